#include "figures/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/error.h"

namespace headscope {
namespace {

// Multiples of the step, free of the dust that division leaves; + 0.0 turns -0 into 0.
double below(double value, double step) {
  return std::floor(value / step + 1e-9) * step + 0.0;
}
double above(double value, double step) {
  return std::ceil(value / step - 1e-9) * step + 0.0;
}

// "0.25", "−3" with a true minus sign.
std::string tic_text(double number) {
  std::string text = fmt::format("{:.10g}", number);
  for (std::size_t at = 0; (at = text.find('-', at)) != std::string::npos;) text.replace(at, 1, "−");
  return text;
}

// A round step (1, 2, 5 times a power of ten) that gives at most `steps` steps over `width`, which is positive.
double round_step(double width, int steps) {
  HEADSCOPE_CHECK(width > 0 && width < 1e101, "width = {}", width);  // or the search would not end
  double power = std::pow(10, std::floor(std::log10(width / steps)));
  for (;; power *= 10)
    for (const double factor : {1.0, 2.0, 5.0})
      if (width <= factor * power * (steps + 1e-9)) return factor * power;
}

// Tics at multiples of the step from `first` to `last`, in units of `unit`.
void add_tics(Axis& axis, double first, double last, double step, double unit = 1) {
  for (int i = 0; i < 64 && first + i * step < last + step / 2; ++i) {
    const double at = std::fabs(first + i * step) < step / 1e6 ? 0 : first + i * step;
    axis.tics.push_back({at, tic_text(at / unit)});
  }
}
// Those inside the axis.
void add_tics(Axis& axis, double step, double unit = 1) {
  add_tics(axis, above(axis.low, step), below(axis.high, step), step, unit);
}

void fit_any(Axis& axis, Extent shown, int steps) {
  const double size = std::max(std::fabs(shown.low), std::fabs(shown.high));
  const double least = size > 1e-100 ? size * 1e-3 : 1;  // tics of a narrower range would all read the same
  if (shown.high - shown.low < least) shown = {shown.low - least / 2, shown.high + least / 2};
  const double step = round_step(shown.high - shown.low, steps);
  axis.low = below(shown.low, step / 2);
  axis.high = above(shown.high, step / 2);
  add_tics(axis, step);
}

void fit_share(Axis& axis, const Extent& shown) {
  constexpr double least = 0.01;  // a smaller difference of shares is not worth a scale of its own
  double low = std::clamp(shown.low, 0.0, 1.0), high = std::clamp(shown.high, 0.0, 1.0);
  if (high - low < least) {
    low = std::clamp((low + high - least) / 2, 0.0, 1 - least);
    high = low + least;
  }
  if (high - low >= 0.5) {  // most of the range: show all of it where little is lost
    if (low <= 0.25) low = 0;
    if (high >= 0.75) high = 1;
  }
  const double step = round_step(high - low, 5);
  axis.low = std::max(below(low, step), 0.0);
  axis.high = std::min(above(high, step), 1.0);
  add_tics(axis, step);
}

// Tics at whole steps from the middle, ends at half ones.
void fit_around(Axis& axis, const Extent& shown) {
  constexpr double most = 1e6;
  double down = std::clamp(axis.middle - shown.low, 0.0, most), up = std::clamp(shown.high - axis.middle, 0.0, most);
  if (std::max(down, up) < axis.least) down = up = axis.least;
  const double step = round_step(std::max(down, up), 3);
  axis.low = axis.middle - above(down, step / 2);
  axis.high = axis.middle + above(up, step / 2);
  add_tics(axis, axis.middle - below(axis.middle - axis.low, step), axis.middle + below(axis.high - axis.middle, step),
           step);
}

void fit_integers(Axis& axis, const Extent& shown, int steps) {
  constexpr double most = 1e9;  // half a unit must show in ten digits
  const double first = std::round(std::clamp(shown.low, -most, most));
  const double last = std::round(std::clamp(shown.high, -most, most));
  axis.low = first - 0.5;
  axis.high = last + 0.5;
  if (steps == 1 && first < last)
    add_tics(axis, first, last, last - first);
  else
    add_tics(axis, std::max(round_step(std::max(last - first, 1.0), steps), 1.0));
}

struct TokenUnit {
  double size = 1;
  std::string_view name;  // empty: single tokens
};
TokenUnit token_unit(double most) {
  if (most < 1e3) return {};
  if (most < 1e6) return {1e3, "thousand"};
  if (most < 1e10) return {1e6, "M"};
  return {1e9, "B"};
}

// "1", "10", "100", "1k", "10k", …
std::string power_text(double power) {
  std::size_t unit = 0;
  constexpr std::string_view units[] = {"", "k", "M", "B", "T"};
  for (; power >= 1000 && unit + 1 < std::size(units); ++unit) power /= 1000;
  return fmt::format("{}{}", power, units[unit]);
}

void fit_decades(Axis& axis, const Extent& shown) {
  axis.log = true;
  axis.label = {axis.kind == Axis::tokens ? "tokens" : "updates"};
  axis.low = axis.decades_from;
  axis.high = std::max(shown.high, 1.01 * axis.low);
  for (double at = 1; at <= axis.high; at *= 10)
    if (at >= axis.low) axis.tics.push_back({at, power_text(at)});
}

void fit_course(Axis& axis, const Extent& shown, int steps) {
  if (axis.decades_from > 0) return fit_decades(axis, shown);
  const TokenUnit unit = token_unit(shown.high);
  const char* counted = axis.kind == Axis::tokens ? "tokens" : "updates";
  axis.label = {unit.name.empty() ? counted : fmt::format("{} ({})", counted, unit.name)};
  const double width = shown.high - shown.low;
  if (width == 0) {
    const double half = std::max(unit.size, 1e-3 * std::fabs(shown.low));
    axis.low = shown.low - half;
    axis.high = shown.low + half;
    axis.tics = {{shown.low, tic_text(shown.low / unit.size)}};
    return;
  }
  const double step = round_step(width, steps), next = above(shown.high, step);
  axis.low = shown.low;
  axis.high = !axis.tight && next - shown.high < 0.04 * width ? next : shown.high;
  add_tics(axis, step, unit.size);
}

void fit_doubling(Axis& axis, const Extent& shown) {
  axis.log = true;
  constexpr double least = 1.0 / 64;
  constexpr double most_tics = 9;  // 1, 2, …, 256
  double first = 1;
  while (first > shown.low && first > least) first /= 2;
  axis.low = 0.95 * first;
  axis.high = std::max(shown.high, 2 * first) * 1.05;
  double factor = 2, at = 1;
  while (std::log(shown.high / first) >= most_tics * std::log(factor)) factor *= factor;
  while (at > first) at /= factor;
  if (at < first) at *= factor;
  for (; at <= shown.high; at *= factor) axis.tics.push_back({at, tic_text(at)});
}

}  // namespace

bool can_be_shown(double value) {
  return std::fabs(value) <= 1e100;
}

void Extent::add(double value) {
  if (!can_be_shown(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

void Extent::add(const Extent& other) {
  low = std::min(low, other.low);
  high = std::max(high, other.high);
}

Axis fitted(Axis axis, Extent shown, int steps) {
  if (axis.kind == Axis::fixed) return axis;
  shown.add(axis.include);
  if (shown.empty()) shown = axis.kind == Axis::around ? Extent{axis.middle, axis.middle} : Extent{0, 1};
  std::vector<Tic> given = std::move(axis.tics);
  axis.tics.clear();
  if (axis.kind == Axis::share)
    fit_share(axis, shown);
  else if (axis.kind == Axis::integers)
    fit_integers(axis, shown, steps);
  else if (axis.kind == Axis::tokens || axis.kind == Axis::updates)
    fit_course(axis, shown, steps);
  else if (axis.kind == Axis::around)
    fit_around(axis, shown);
  else if (axis.kind == Axis::doubling)
    fit_doubling(axis, shown);
  else
    fit_any(axis, shown, steps);
  if (!given.empty()) axis.tics = std::move(given);
  const double extra = (axis.high - axis.low) * axis.padding;
  axis.low -= extra;
  axis.high += extra;
  axis.kind = Axis::fixed;
  return axis;
}

std::string token_text(double tokens, double most) {
  const TokenUnit unit = token_unit(most);
  if (tokens == 0) return "0 tokens";
  const double count = tokens / unit.size;
  const std::string number = count < 100 ? fmt::format("{:.3g}", count) : fmt::format("{:.0f}", count);
  return fmt::format("{}{}{} tokens", number, unit.name.empty() ? "" : " ", unit.name);
}

}  // namespace headscope
