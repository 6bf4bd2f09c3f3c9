// Spearman's rank correlation: whether two quantities rise together, whatever the shape of the curve.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/missing.h"

namespace headscope {

// Ranks 1..n; equal values share the mean of their ranks. No value may be NaN.
std::vector<double> average_ranks(std::span<const double> values);

struct RankCorrelation {
  double rho = missing;
  double low = missing, high = missing;  // 95 % interval
  double p_value = missing;              // two-sided, of no association
  std::size_t n = 0;                     // pairs that counted
};

// rho is the correlation of the average ranks. Its interval is Fisher's, tanh(atanh rho +- 1.96 se), with the standard
// error of ranks, se^2 = (1 + rho^2/2) / (n - 3) (Bonett and Wright, Psychometrika 65, 2000), and needs n >= 4. The
// p-value takes rho sqrt((n - 2) / (1 - rho^2)) for Student's t with n - 2 degrees of freedom, as
// scipy.stats.spearmanr. All are NaN for n < 3 or when one side is constant. Pairs with a NaN do not count.
RankCorrelation rank_correlation(std::span<const double> x, std::span<const double> y);

}  // namespace headscope
