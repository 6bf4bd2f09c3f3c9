// Means of few values with their uncertainty; tests of paired differences.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace headscope {

// The mean of n values with its 95 % interval by Student's t. NaN: n < 2 (or n < 1, for the mean).
struct MeanInterval {
  double mean = 0, standard_error = 0, low = 0, high = 0;
  std::size_t n = 0;
};
MeanInterval mean_interval(std::span<const double> values);

// Tests of the mean of n paired differences, with n - 1 degrees of freedom. All p-values are NaN for n < 2.
//   p_value: that the mean is 0, two-sided (paired t).
//   p_equivalence: that the mean is `margin` or more away from 0, by two one-sided tests (D. J. Schuirmann, J.
//   Pharmacokin. Biopharm. 15, 1987): max(P(T >= (mean + margin)/se), P(T <= (mean - margin)/se)).
// Without spread: p_value is 1 for a mean of 0, otherwise 0; p_equivalence is 0 for |mean| < margin, otherwise 1.
struct PairedTest {
  MeanInterval difference;
  double p_value = 0, p_equivalence = 0;
};
PairedTest paired_test(std::span<const double> differences, double margin);

// Holm's adjustment of the p-values of one family (S. Holm, Scand. J. Statist. 6, 1979). NaN stays, and is no test of
// the family.
std::vector<double> holm_adjusted(std::vector<double> p_values);

// The share of the 2^n ways to choose the signs of the differences whose mean is as far from 0 as that of the
// differences or farther: exact, two-sided. NaN for n < 1, and for more differences than can be gone through.
constexpr std::size_t most_flipped = 24;
double sign_flip_test(std::span<const double> differences);

}  // namespace headscope
