#include "heads/terminal_map.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"

namespace headscope {
namespace {

// Dark to light: viridis at eight places, as xterm's colours.
constexpr std::array colours_256 = {53, 54, 24, 30, 36, 71, 149, 227};
constexpr std::array<std::string_view, 5> shades = {" ", "░", "▒", "▓", "█"};
constexpr std::size_t number_width = 7, row_label_width = 10;

struct Range {
  double low = 0, high = 0;
  // 0 to 1; 0 where all are equal.
  [[nodiscard]] double place(double value) const { return high > low ? (value - low) / (high - low) : 0; }
};

Range range_of(std::span<const double> values) {
  Range range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    range.low = std::min(range.low, value);
    range.high = std::max(range.high, value);
  }
  return range;
}

template <std::size_t N>
std::size_t step_of(double place) {
  return std::min(static_cast<std::size_t>(place * static_cast<double>(N)), N - 1);
}

std::string number(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::fabs(value);
  return fixed_text(value, size < 1 ? 3 : size < 10 ? 2 : size < 1000 ? 1 : 0);
}

// One head: a number, or a shade where there is no room for it.
std::string cell(double value, const Range& range, bool with_numbers, bool colours) {
  const std::string text = with_numbers ? fmt::format("{:>{}}", number(value), number_width) : " ";
  if (!std::isfinite(value)) return with_numbers ? text : "-";
  if (!colours) return with_numbers ? text : std::string(shades[step_of<shades.size()>(range.place(value))]);
  const std::size_t step = step_of<colours_256.size()>(range.place(value));
  return fmt::format("\x1b[48;5;{};38;5;{}m{}\x1b[0m", colours_256[step], step < 4 ? 231 : 16, text);
}

}  // namespace

std::string terminal_map(const Tracks& tracks, std::size_t moment, const Metric& metric, bool colours,
                         std::size_t columns) {
  const std::span<const double> values = tracks.at(metric.name, moment);
  if (values.empty()) fail_input("{} was not measured; leave out --track or name it there", metric.name);
  const auto heads = static_cast<std::size_t>(tracks.heads_of(metric.name));
  const bool with_numbers = row_label_width + heads * number_width <= columns;
  const Range range = range_of(values);
  std::string map = fmt::format("  {:<{}}", metric.name, row_label_width - 2);
  if (metric.name.size() > row_label_width - 2) map = fmt::format("  {}\n{:>{}}", metric.name, "", row_label_width);
  for (std::size_t head = 0; with_numbers && head < heads; ++head)
    map += fmt::format("{:>{}}", fmt::format("{}{}", metric.kind == HeadKind::key ? "K" : "H", head), number_width);
  map += "\n";
  for (std::size_t layer = 0; layer < values.size() / heads; ++layer) {
    map += fmt::format("  {:<{}}", fmt::format("layer {}", layer), row_label_width - 2);
    for (std::size_t head = 0; head < heads; ++head)
      map += cell(values[layer * heads + head], range, with_numbers, colours);
    map += "\n";
  }
  return map + fmt::format("  {}: {} to {}{}{}\n", metric.meaning, number(range.low), number(range.high),
                           metric.unit.empty() ? "" : " ", metric.unit);
}

}  // namespace headscope
