// Sums of several functions of an index in one pass, in double.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace headscope {

// The sums over i < n of the K values of term(i). Sixteen partial sums for each fill the vector registers, hide the
// latency of addition and, as pairwise summation does, keep rounding small. The order of addition depends on n alone.
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

}  // namespace headscope
