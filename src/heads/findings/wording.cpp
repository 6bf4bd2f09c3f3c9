#include "heads/findings/wording.h"

#include <fmt/format.h>

#include <cmath>

namespace headscope {

std::string number_text(double value) {
  if (!std::isfinite(value)) return "–";
  const double size = std::fabs(value);
  const std::string digits = size >= 1000 && size < 1e15 ? fmt::format("{:.0f}", size) : fmt::format("{:.3g}", size);
  return (value < 0 ? "−" : "") + digits;
}

std::string percent_text(double share) {
  return std::isfinite(share) ? fmt::format("{:.0f} %", 100 * share) : "–";
}

std::string interval_text(double low, double high) {
  return std::isnan(low) || std::isnan(high) ? "–" : fmt::format("{} to {}", number_text(low), number_text(high));
}

std::string head_text(std::int64_t layer, std::int64_t head) {
  return fmt::format("L{}H{}", layer, head);
}

std::string joined(std::span<const std::string> parts) {
  if (parts.empty()) return "";
  if (parts.size() == 1) return parts.front();
  return fmt::format("{} and {}", fmt::join(parts.first(parts.size() - 1), ", "), parts.back());
}

std::string counted(std::size_t n, std::string_view thing) {
  return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s");
}

std::string not_tracked_text(std::span<const std::string> metrics) {
  return fmt::format("Not answered: {} {} not tracked.", joined(metrics), metrics.size() == 1 ? "was" : "were");
}

}  // namespace headscope
