#include "page/column.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "stats/sample_moments.h"

namespace headscope {

int column_digits(std::span<const double> values) {
  constexpr int most = 6;
  std::vector<double> sizes;
  for (const double value : values)
    if (std::isfinite(value) && value != 0) sizes.push_back(std::fabs(value));
  if (sizes.empty()) return 0;
  return std::clamp(3 - static_cast<int>(std::floor(std::log10(median(std::move(sizes))))), 0, most);
}

std::string column_cell(double value, int digits) {
  if (!std::isfinite(value)) return "–";
  std::string text = std::fabs(value) < 1e9 ? fixed_text(value, digits) : fmt::format("{:.4g}", value);
  if (text.starts_with('-')) text.replace(0, 1, "−");
  return text;
}

std::string interval_cell(double low, double high, int digits) {
  if (!std::isfinite(low) || !std::isfinite(high)) return "–";
  return fmt::format("{} to {}", column_cell(low, digits), column_cell(high, digits));
}

std::vector<std::string> column_text(std::span<const double> values) {
  const int digits = column_digits(values);
  std::vector<std::string> cells;
  for (const double value : values) cells.push_back(column_cell(value, digits));
  return cells;
}

}  // namespace headscope
