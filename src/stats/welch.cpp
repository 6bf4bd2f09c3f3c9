#include "stats/welch.h"

#include <cmath>

#include "core/missing.h"
#include "stats/distributions.h"
#include "stats/sample_moments.h"

namespace headscope {
namespace {
constexpr double upper_end = 0.975;  // of a two-sided interval of 95 %

double variance_of_mean(const SampleMoments& sample) {
  return sample.variance() / static_cast<double>(sample.n);
}

}  // namespace

MeanInterval mean_interval(std::span<const double> values) {
  const SampleMoments sample = sample_moments(values);
  MeanInterval result{missing, missing, missing, missing, sample.n};
  if (sample.n == 0) return result;
  result.mean = sample.mean;
  if (sample.n == 1) return result;
  result.standard_error = std::sqrt(variance_of_mean(sample));
  const double half = student_t_quantile(upper_end, static_cast<double>(sample.n - 1)) * result.standard_error;
  result.low = result.mean - half;
  result.high = result.mean + half;
  return result;
}

WelchTest welch_test(std::span<const double> a, std::span<const double> b) {
  const SampleMoments first = sample_moments(a), second = sample_moments(b);
  WelchTest test{missing, missing, missing, missing, missing, missing, missing};
  if (first.n == 0 || second.n == 0) return test;
  test.difference = first.mean - second.mean;
  if (first.n == 1 || second.n == 1) return test;
  const double v_a = variance_of_mean(first), v_b = variance_of_mean(second);
  test.standard_error = std::sqrt(v_a + v_b);
  if (test.standard_error == 0) {
    test.p_value = test.difference == 0 ? 1 : 0;
    test.low = test.high = test.difference;
    return test;
  }
  test.t = test.difference / test.standard_error;
  // Shares of the variance instead of its squares, which could underflow.
  const double share_a = v_a / (v_a + v_b), share_b = v_b / (v_a + v_b);
  test.df = 1 / (share_a * share_a / static_cast<double>(first.n - 1) +
                 share_b * share_b / static_cast<double>(second.n - 1));
  test.p_value = student_t_two_sided(test.t, test.df);
  const double half = student_t_quantile(upper_end, test.df) * test.standard_error;
  test.low = test.difference - half;
  test.high = test.difference + half;
  return test;
}

}  // namespace headscope
