// Means of few values with their uncertainty, and whether two of them differ.
#pragma once

#include <span>

namespace headscope {

// The mean of n values with its 95 % interval by Student's t. NaN: n < 2 (or n < 1, for the mean).
struct MeanInterval {
  double mean = 0, standard_error = 0, low = 0, high = 0;
  std::size_t n = 0;
};
MeanInterval mean_interval(std::span<const double> values);

// The difference of two means, mean(a) - mean(b), by Welch's test (unequal variances; B. L. Welch, Biometrika 34,
// 1947):
//   t = difference / se,  se^2 = s_a^2/n_a + s_b^2/n_b,
//   df = se^4 / ((s_a^2/n_a)^2/(n_a - 1) + (s_b^2/n_b)^2/(n_b - 1))  (Satterthwaite).
// With fewer than two values on a side all but the difference is NaN. Without any spread t and df are NaN, and the
// p-value is 1 for equal means, otherwise 0.
struct WelchTest {
  double difference = 0, standard_error = 0, t = 0, df = 0, p_value = 0;
  double low = 0, high = 0;  // 95 % interval of the difference
};
WelchTest welch_test(std::span<const double> a, std::span<const double> b);

}  // namespace headscope
