#include "stats/quartiles.h"

#include <algorithm>
#include <cmath>

namespace headscope {

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

}  // namespace headscope
