// How likely a study of n pairs decides: exact for normal differences, by one integral over their deviation.
#pragma once

#include <cstddef>
#include <optional>

namespace headscope {

// Paired differences are normal with this standard deviation. They are `different` when their mean is `margin` or more
// away from 0 and the paired t test is significant at 5 % after Holm's adjustment for `family` tests; the chance is
// that of the first step, so it is a lower bound. They are `equivalent` when both one-sided tests are significant at
// 5 %.
struct PairedDesign {
  double deviation = 0;
  double margin = 1;
  std::size_t family = 3;
};

// The chance of that outcome with n >= 2 pairs whose true mean difference is `mean`. Absolute error below 1e-9.
double chance_of_different(const PairedDesign& design, double mean, std::size_t n);
double chance_of_equivalent(const PairedDesign& design, double mean, std::size_t n);

// The smallest number of pairs with a chance of 80 % to find a difference of twice the margin, and to confirm one of 0.
// None: more than most_pairs.
constexpr std::size_t most_pairs = 1000;
std::optional<std::size_t> pairs_for_different(const PairedDesign& design);
std::optional<std::size_t> pairs_for_equivalent(const PairedDesign& design);

}  // namespace headscope
