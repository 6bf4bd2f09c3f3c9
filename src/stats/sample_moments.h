// Sample moments of one column, its median and its quartiles.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/missing.h"

namespace headscope {

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

// Coefficient of variation: standard deviation (n - 1) over |mean|. 0 for a uniform gain.
double coefficient_of_variation(const std::vector<double>& values);

}  // namespace headscope
