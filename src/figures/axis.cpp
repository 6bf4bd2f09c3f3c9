#include "figures/axis.h"

#include "core/error.h"

namespace headscope {
namespace {

std::pair<double, double> extent(const std::vector<double>& values) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double value : values) {
    if (!(std::fabs(value) <= 1e100)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  return {low, high};
}

// Multiples of the step, free of the dust that division leaves; + 0.0 turns -0 into 0.
double below(double value, double step) {
  return std::floor(value / step + 1e-9) * step + 0.0;
}
double above(double value, double step) {
  return std::ceil(value / step - 1e-9) * step + 0.0;
}

}  // namespace

double round_step(double width, int max_steps) {
  HEADSCOPE_CHECK(width > 0 && width < 1e101, "width = {}", width);  // or the search would not end
  double power = std::pow(10, std::floor(std::log10(width / max_steps)));
  for (;; power *= 10)
    for (const double factor : {1.0, 2.0, 5.0})
      if (width <= factor * power * (max_steps + 1e-9)) return factor * power;
}

std::int64_t integer_step(std::int64_t width, std::int64_t max_steps) {
  HEADSCOPE_CHECK(width >= 0 && width <= std::int64_t{1} << 41, "width = {}", width);
  for (std::int64_t power = 1;; power *= 10) {
    for (const std::int64_t factor : {1, 2, 4, 5})
      if (width <= factor * power * max_steps) return factor * power;
  }
}

Axis unit_axis(const std::vector<double>& values) {
  auto [low, high] = extent(values);
  if (!(low <= high)) return {};
  if (low < -100 || high > 100) return round_axis(values);
  if (high - low >= 0.5 && low >= 0 && high <= 1) {  // most of the range: show all of it where little is lost
    if (low <= 0.25) low = 0;
    if (high >= 0.75) high = 1;
  }
  const double grain = high - low > 0.3 ? 0.1 : 0.05;
  Axis axis;
  axis.low = below(low, grain);
  axis.high = above(high, grain);
  const bool stays_in_unit = low >= 0 && high <= 1;
  while (axis.high - axis.low < 0.1 - 1e-9) {
    axis.low -= grain;
    axis.high += grain;
    if (stays_in_unit) axis.low = std::max(axis.low, 0.0);
    if (stays_in_unit) axis.high = std::min(axis.high, 1.0);
  }
  axis.step = round_step(axis.high - axis.low, 5);
  axis.first_tic = above(axis.low, axis.step);
  axis.last_tic = below(axis.high, axis.step);
  return axis;
}

Axis count_axis(const std::vector<double>& values) {
  const double high = std::max(extent(values).second, 1.0);  // -inf without values
  Axis axis;
  axis.step = round_step(high, 6);
  axis.high = above(high, axis.step);
  axis.last_tic = axis.high;
  return axis;
}

Axis round_axis(const std::vector<double>& values, int max_steps) {
  auto [low, high] = extent(values);
  if (!(low <= high)) return {};
  const double size = std::max(std::fabs(low), std::fabs(high));
  const double least = size > 1e-100 ? size * 1e-3 : 1;  // tics of a narrower range would all read the same
  if (high - low < least) {
    low -= least / 2;
    high += least / 2;
  }
  Axis axis;
  axis.step = round_step(high - low, max_steps);
  axis.low = below(low, axis.step / 2);
  axis.high = above(high, axis.step / 2);
  axis.first_tic = above(axis.low, axis.step);
  axis.last_tic = below(axis.high, axis.step);
  return axis;
}

Axis integer_axis(std::int64_t first, std::int64_t last, std::int64_t max_steps) {
  constexpr std::int64_t most = 1'000'000'000;  // half a unit must show in ten digits
  HEADSCOPE_CHECK(-most <= first && first <= last && last <= most, "from {} to {}", first, last);
  const std::int64_t step = integer_step(last - first, max_steps);
  const std::int64_t first_tic = first >= 0 ? (first + step - 1) / step * step : first;
  return {.low = static_cast<double>(first) - 0.5,
          .high = static_cast<double>(last) + 0.5,
          .first_tic = static_cast<double>(first_tic),
          .last_tic = static_cast<double>(last),
          .step = static_cast<double>(step)};
}

Axis padded(Axis axis, double share) {
  const double extra = (axis.high - axis.low) * share;
  axis.low -= extra;
  axis.high += extra;
  return axis;
}

Script axis_commands(const Script& name, const Axis& axis) {
  return format_script("set {0}range [{1:.10g}:{2:.10g}]; set {0}tics {3:.10g},{4:.10g},{5:.10g}\n", name, axis.low,
                       axis.high, axis.first_tic, axis.step, axis.last_tic);
}

}  // namespace headscope
