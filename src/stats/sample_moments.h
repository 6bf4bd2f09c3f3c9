// Sums over a column; its sample moments, its median and its quartiles.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "core/missing.h"

namespace headscope {

// The sums over i < n of the K values of term(i), in one pass, in double. Sixteen partial sums for each fill the vector
// registers, hide the latency of addition and, as pairwise summation does, keep rounding small. The order of addition
// depends on n alone.
template <std::size_t K, class Term>
std::array<double, K> sums(std::size_t n, Term term) {
  constexpr std::size_t lanes = 16;
  double partial[K][lanes] = {};
  const std::size_t whole = n - n % lanes;
  for (std::size_t i = 0; i < whole; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const std::array<double, K> values = term(i + lane);
      for (std::size_t k = 0; k < K; ++k) partial[k][lane] += values[k];
    }
  }
  for (std::size_t i = whole; i < n; ++i) {
    const std::array<double, K> values = term(i);
    for (std::size_t k = 0; k < K; ++k) partial[k][i - whole] += values[k];
  }
  std::array<double, K> totals{};
  for (std::size_t k = 0; k < K; ++k) {
    for (const double value : partial[k]) totals[k] += value;
  }
  return totals;
}

// The mean up to a few roundings of its terms; n >= 1.
inline double rough_mean(std::span<const double> x) {
  return sums<1>(x.size(), [&](std::size_t i) { return std::array{x[i]}; })[0] / static_cast<double>(x.size());
}

struct SampleMoments {
  double mean = 0;
  double m2 = 0, m3 = 0, m4 = 0;  // central moments, divided by n
  std::size_t n = 0;

  [[nodiscard]] double variance() const;         // n - 1 in the denominator; NaN for n < 2
  [[nodiscard]] double skewness() const;         // as scipy.stats.skew(x, bias=False)
  [[nodiscard]] double excess_kurtosis() const;  // as scipy.stats.kurtosis(x, bias=False)
};

// Two passes: the mean, then the central sums, corrected for the rounding of the mean. A numerically constant column
// (m2 <= (eps * mean)^2) has NaN skewness and kurtosis, by scipy's rule; so has an empty one.
SampleMoments sample_moments(std::span<const double> x);

// The mean of the middle one or two; NaN if any value is NaN or there are none (numpy.median).
double median(std::vector<double> values);

// Of the finite values, linear between order statistics (numpy's default); missing when there are none.
struct Quartiles {
  double low = missing;
  double median = missing;
  double high = missing;
};
Quartiles quartiles(std::vector<double> values);

// The standard error of a value over n groups, from the n values without one group each: √((n-1)/n · Σ (x - x̄)²). NaN
// for n < 2.
double jackknife_error(std::span<const double> without_one);

// Coefficient of variation: standard deviation (n - 1) over |mean|. 0 for a uniform gain.
double coefficient_of_variation(const std::vector<double>& values);

}  // namespace headscope
