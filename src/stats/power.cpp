#include "stats/power.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "stats/distributions.h"

namespace headscope {
namespace {

constexpr double level = 0.05;
constexpr double wanted_chance = 0.8;

// Simpson's rule with 2 * halves intervals.
template <class Function>
double integral(double low, double high, std::size_t halves, Function function) {
  if (!(low < high)) return 0;
  const double step = (high - low) / static_cast<double>(2 * halves);
  double sum = function(low) + function(high);
  for (std::size_t i = 1; i < 2 * halves; ++i)
    sum += (i % 2 == 1 ? 4 : 2) * function(low + step * static_cast<double>(i));
  return sum * step / 3;
}

// The mean of chance(x) over x = s sqrt(df) / deviation, s the standard deviation of the sample: chi with df degrees of
// freedom. `chance` has a kink at one place and changes over a distance of 1/steepness.
template <class Chance>
double over_deviations(double df, double kink, double steepness, Chance chance) {
  constexpr double far = 10;  // chi has a deviation below 0.71
  const double low = std::max(0.0, std::sqrt(df) - far), high = std::sqrt(df) + far;
  const double middle = std::clamp(kink, low, high);
  const double scale = (df / 2 - 1) * std::numbers::ln2 + std::lgamma(df / 2);
  const auto halves = static_cast<std::size_t>(2000 * (1 + steepness));
  const auto weighted = [&](double x) {
    const double log_power = df == 1 ? 0 : (df - 1) * std::log(x);
    return std::exp(log_power - x * x / 2 - scale) * chance(x);
  };
  return integral(low, middle, halves, weighted) + integral(middle, high, halves, weighted);
}

template <class Chance>
std::optional<std::size_t> smallest(Chance chance) {
  for (std::size_t n = 2; n <= most_pairs; ++n)
    if (chance(n) >= wanted_chance) return n;
  return std::nullopt;
}

}  // namespace

double chance_of_different(const PairedDesign& design, double mean, std::size_t n) {
  const double deviation = design.deviation, margin = design.margin;
  if (deviation == 0) return mean != 0 && std::fabs(mean) >= margin ? 1 : 0;
  // In standard errors, with df = n - 1: |mean| >= max(margin, critical * x).
  const auto df = static_cast<double>(n - 1);
  const double unit = deviation / std::sqrt(static_cast<double>(n));
  const double critical = student_t_quantile(1 - level / 2 / static_cast<double>(design.family), df) / std::sqrt(df);
  return over_deviations(df, margin / unit / critical, critical, [&](double x) {
    const double least = std::max(margin / unit, critical * x);
    return normal_cdf(mean / unit - least) + normal_cdf(-mean / unit - least);
  });
}

double chance_of_equivalent(const PairedDesign& design, double mean, std::size_t n) {
  const double deviation = design.deviation, margin = design.margin;
  if (deviation == 0) return std::fabs(mean) < margin ? 1 : 0;
  const auto df = static_cast<double>(n - 1);
  const double unit = deviation / std::sqrt(static_cast<double>(n));
  const double critical = student_t_quantile(1 - level, df) / std::sqrt(df);
  return over_deviations(df, margin / unit / critical, critical, [&](double x) {
    const double most = margin / unit - critical * x;
    return most <= 0 ? 0 : normal_cdf(most - mean / unit) - normal_cdf(-most - mean / unit);
  });
}

std::optional<std::size_t> pairs_for_different(const PairedDesign& design) {
  return smallest([&](std::size_t n) { return chance_of_different(design, 2 * design.margin, n); });
}

std::optional<std::size_t> pairs_for_equivalent(const PairedDesign& design) {
  return smallest([&](std::size_t n) { return chance_of_equivalent(design, 0, n); });
}

}  // namespace headscope
