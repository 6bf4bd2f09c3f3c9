#include "stats/sample_moments.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headscope {
namespace {

bool numerically_constant(const SampleMoments& m) {
  const double rounding = std::numeric_limits<double>::epsilon() * m.mean;
  return m.m2 <= rounding * rounding;
}

}  // namespace

SampleMoments sample_moments(std::span<const double> x) {
  if (x.empty()) return {.mean = missing, .m2 = missing, .m3 = missing, .m4 = missing, .n = 0};
  const auto n = static_cast<double>(x.size());
  const double centre = rough_mean(x);
  const auto [s1, s2, s3, s4] = sums<4>(x.size(), [&](std::size_t i) {
    const double d = x[i] - centre, square = d * d;
    return std::array{d, square, square * d, square * square};
  });
  // SampleMoments about the centre, moved to the mean, which is `shift` away.
  const double shift = s1 / n;
  const double c2 = s2 / n, c3 = s3 / n, c4 = s4 / n;
  const double m2 = c2 - shift * shift;
  return {
      .mean = centre + shift,
      .m2 = m2 < 0 ? 0 : m2,
      .m3 = c3 - 3 * shift * c2 + 2 * shift * shift * shift,
      .m4 = c4 - 4 * shift * c3 + 6 * shift * shift * c2 - 3 * shift * shift * shift * shift,
      .n = x.size(),
  };
}

double SampleMoments::variance() const {
  return n < 2 ? missing : m2 * static_cast<double>(n) / static_cast<double>(n - 1);
}

// Adjusted Fisher-Pearson coefficient; too few values for the adjustment give the plain one.
double SampleMoments::skewness() const {
  if (n == 0 || numerically_constant(*this)) return missing;
  const auto count = static_cast<double>(n);
  const double plain = m3 / (m2 * std::sqrt(m2));
  return n > 2 ? plain * std::sqrt(count * (count - 1)) / (count - 2) : plain;
}

// k-statistics: (n-1)/((n-2)(n-3)) ((n+1) m4/m2^2 - 3 (n-1)); too few values give the plain m4/m2^2 - 3.
double SampleMoments::excess_kurtosis() const {
  if (n == 0 || numerically_constant(*this)) return missing;
  const auto count = static_cast<double>(n);
  const double plain = m4 / (m2 * m2);
  if (n <= 3) return plain - 3;
  return (count - 1) / ((count - 2) * (count - 3)) * ((count + 1) * plain - 3 * (count - 1));
}

double median(std::vector<double> values) {
  const bool undefined = std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
  if (values.empty() || undefined) return missing;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return 0.5 * (*std::max_element(values.begin(), middle) + *middle);
}

Quartiles quartiles(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double fraction) {
    const double place = fraction * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (values[above] - values[below]) * (place - static_cast<double>(below));
  };
  return {.low = at(0.25), .median = at(0.5), .high = at(0.75)};
}

double jackknife_error(std::span<const double> without_one) {
  const SampleMoments sample = sample_moments(without_one);
  return sample.n < 2 ? missing : std::sqrt(static_cast<double>(sample.n - 1) * sample.m2);
}

double coefficient_of_variation(const std::vector<double>& values) {
  const SampleMoments sample = sample_moments(values);
  return std::sqrt(sample.variance()) / std::abs(sample.mean);
}

}  // namespace headscope
