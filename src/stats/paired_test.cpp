#include "stats/paired_test.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/missing.h"
#include "stats/distributions.h"
#include "stats/sample_moments.h"

namespace headscope {
namespace {

constexpr double upper_end = 0.975;  // of a two-sided interval of 95 %

// The sums of the values with all choices of their signs, ascending.
std::vector<double> signed_sums(std::span<const double> values) {
  std::vector<double> sums = {0};
  for (const double value : values) {
    const std::size_t before = sums.size();
    for (std::size_t i = 0; i < before; ++i) {
      sums.push_back(sums[i] + value);
      sums[i] -= value;
    }
  }
  std::ranges::sort(sums);
  return sums;
}

}  // namespace

MeanInterval mean_interval(std::span<const double> values) {
  const SampleMoments sample = sample_moments(values);
  MeanInterval result{missing, missing, missing, missing, sample.n};
  if (sample.n == 0) return result;
  result.mean = sample.mean;
  if (sample.n == 1) return result;
  result.standard_error = std::sqrt(sample.variance() / static_cast<double>(sample.n));
  const double half = student_t_quantile(upper_end, static_cast<double>(sample.n - 1)) * result.standard_error;
  result.low = result.mean - half;
  result.high = result.mean + half;
  return result;
}

PairedTest paired_test(std::span<const double> differences, double margin) {
  PairedTest test{mean_interval(differences), missing, missing};
  const auto& [mean, se, low, high, n] = test.difference;
  if (n < 2) return test;
  if (se == 0) {
    test.p_value = mean == 0 ? 1 : 0;
    test.p_equivalence = std::fabs(mean) < margin ? 0 : 1;
    return test;
  }
  const auto df = static_cast<double>(n - 1);
  test.p_value = student_t_two_sided(mean / se, df);
  test.p_equivalence = std::max(student_t_cdf(-(mean + margin) / se, df), student_t_cdf((mean - margin) / se, df));
  return test;
}

std::vector<double> holm_adjusted(std::vector<double> p_values) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < p_values.size(); ++i)
    if (!std::isnan(p_values[i])) order.push_back(i);
  std::ranges::sort(order, {}, [&](std::size_t i) { return p_values[i]; });
  double largest = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    double& p = p_values[order[rank]];
    largest = std::max(largest, p * static_cast<double>(order.size() - rank));
    p = std::min(largest, 1.0);
  }
  return p_values;
}

double sign_flip_test(std::span<const double> differences) {
  const std::size_t n = differences.size();
  if (n < 1 || n > most_flipped) return missing;
  // Each choice of signs is one of the first half beside one of the second: 2 * 2^(n/2) sums instead of 2^n.
  const std::vector<double> first = signed_sums(differences.first(n / 2)),
                            second = signed_sums(differences.subspan(n / 2));
  const double observed = std::fabs(std::accumulate(differences.begin(), differences.end(), 0.0));
  // Sums that are equal but for rounding count as equal.
  double size = 0;
  for (const double difference : differences) size += std::fabs(difference);
  const double least = observed - 1e-14 * size;
  double inside = 0;                                      // pairs with |sum| < least
  std::size_t low = second.size(), high = second.size();  // of those in the second half that are inside
  for (const double sum : first) {
    while (high > 0 && sum + second[high - 1] >= least) --high;
    while (low > 0 && sum + second[low - 1] > -least) --low;
    if (high > low) inside += static_cast<double>(high - low);
  }
  return 1 - inside / (static_cast<double>(first.size()) * static_cast<double>(second.size()));
}

}  // namespace headscope
