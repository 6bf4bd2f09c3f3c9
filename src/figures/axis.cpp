#include "figures/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

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

// Tics at multiples of the step within the axis, in units of `unit`.
Axis with_tics(Axis axis, double first, double last, double step, double unit = 1) {
  for (int i = 0; i < 64 && first + i * step < last + step / 2; ++i) {
    const double at = std::fabs(first + i * step) < step / 1e6 ? 0 : first + i * step;
    axis.tics.push_back({at, tic_text(at / unit)});
  }
  return axis;
}

}  // namespace

std::string tic_text(double number) {
  std::string text = fmt::format("{:.10g}", number);
  for (std::size_t at = 0; (at = text.find('-', at)) != std::string::npos;) text.replace(at, 1, "−");
  return text;
}

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
  if (!(low <= high)) low = 0, high = 1;
  if (low < -100 || high > 100) return round_axis(values);
  if (high - low >= 0.5 && low >= 0 && high <= 1) {  // most of the range: show all of it where little is lost
    if (low <= 0.25) low = 0;
    if (high >= 0.75) high = 1;
  }
  const double grain = high - low > 0.3 ? 0.1 : 0.05;
  Axis axis{.low = below(low, grain), .high = above(high, grain)};
  const bool stays_in_unit = low >= 0 && high <= 1;
  while (axis.high - axis.low < 0.1 - 1e-9) {
    axis.low -= grain;
    axis.high += grain;
    if (stays_in_unit) axis.low = std::max(axis.low, 0.0);
    if (stays_in_unit) axis.high = std::min(axis.high, 1.0);
  }
  const double step = round_step(axis.high - axis.low, 5);
  return with_tics(axis, above(axis.low, step), below(axis.high, step), step);
}

Axis count_axis(const std::vector<double>& values) {
  const double high = std::max(extent(values).second, 1.0);  // -inf without values
  const double step = round_step(high, 6);
  return with_tics({.high = above(high, step)}, 0, above(high, step), step);
}

Axis round_axis(const std::vector<double>& values, int max_steps) {
  auto [low, high] = extent(values);
  if (!(low <= high)) return unit_axis({});
  const double size = std::max(std::fabs(low), std::fabs(high));
  const double least = size > 1e-100 ? size * 1e-3 : 1;  // tics of a narrower range would all read the same
  if (high - low < least) {
    low -= least / 2;
    high += least / 2;
  }
  const double step = round_step(high - low, max_steps);
  const Axis axis{.low = below(low, step / 2), .high = above(high, step / 2)};
  return with_tics(axis, above(axis.low, step), below(axis.high, step), step);
}

Axis symmetric_axis(const std::vector<double>& values, double middle, double least) {
  double most = least;
  for (const double value : values)
    if (std::isfinite(value)) most = std::max(most, std::fabs(value - middle));
  most = std::min(most, 1e6);
  const double step = round_step(most, 3), ends = below(most, step);
  return with_tics({.low = middle - most, .high = middle + most}, middle - ends, middle + ends, step);
}

Axis integer_axis(std::int64_t first, std::int64_t last, std::int64_t max_steps) {
  constexpr std::int64_t most = 1'000'000'000;  // half a unit must show in ten digits
  HEADSCOPE_CHECK(-most <= first && first <= last && last <= most, "from {} to {}", first, last);
  const std::int64_t step = integer_step(last - first, max_steps);
  const std::int64_t tic = first >= 0 ? (first + step - 1) / step * step : first;
  const std::int64_t last_tic = tic + (last - tic) / step * step;
  return with_tics({.low = static_cast<double>(first) - 0.5, .high = static_cast<double>(last) + 0.5},
                   static_cast<double>(tic), static_cast<double>(last_tic), static_cast<double>(step));
}

Axis token_axis(const std::vector<double>& moments, int max_steps) {
  if (moments.empty()) return labelled(unit_axis({}), {"tokens"});
  const auto [first, last] = std::minmax_element(moments.begin(), moments.end());
  const TokenUnit unit = token_unit(*last);
  const std::string label = unit.name.empty() ? "tokens" : fmt::format("tokens ({})", unit.name);
  if (*first == *last) {
    const double half = std::max(unit.size, 1e-3 * std::fabs(*first));
    return {*first - half, *first + half, {{*first, tic_text(*first / unit.size)}}, {label}};
  }
  Axis axis = round_axis({*first, *last}, max_steps);
  const double step = round_step(*last - *first, max_steps);
  if (*last - *first >= step) {
    axis.low = *first;
    const double next_tic = above(*last, step);
    axis.high = next_tic - *last < 0.04 * (*last - *first) ? next_tic : *last;
  }
  axis.tics.clear();
  return labelled(with_tics(axis, above(axis.low, step), below(axis.high, step), step, unit.size), {label});
}

Axis padded(Axis axis, double share) {
  const double extra = (axis.high - axis.low) * share;
  axis.low -= extra;
  axis.high += extra;
  return axis;
}

Axis labelled(Axis axis, std::vector<std::string> lines) {
  axis.label = std::move(lines);
  return axis;
}

TokenUnit token_unit(double most_tokens) {
  if (most_tokens < 1e3) return {};
  if (most_tokens < 1e6) return {1e3, "thousand"};
  if (most_tokens < 1e10) return {1e6, "M"};
  return {1e9, "B"};
}

std::string token_text(double tokens, const TokenUnit& unit) {
  if (tokens == 0) return "0 tokens";
  const double count = tokens / unit.size;
  const std::string number = count < 100 ? fmt::format("{:.3g}", count) : fmt::format("{:.0f}", count);
  return fmt::format("{}{}{} tokens", number, unit.name.empty() ? "" : " ", unit.name);
}

}  // namespace headscope
