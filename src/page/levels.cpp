#include "page/levels.h"

#include <algorithm>
#include <cmath>

#include "heads/findings/answer.h"

namespace headscope {
namespace {

// A configuration that says more is damaged, and sums over so many rows would take too long.
constexpr std::int64_t longest_sequence = 10'000'000, most_dimensions = 10'000;

struct Bound {
  double value = 0;
  bool highest = false;  // the metric must not be above it

  bool operator==(const Bound&) const = default;
};

// Where the score of the metric alone is the minimum: the formulas of Score, solved for the metric.
std::optional<Bound> bound_of(const Minimum& minimum, std::int64_t d_k) {
  const double flat = d_k > 1 ? 1 / std::sqrt(static_cast<double>(d_k)) : 0;
  switch (minimum.score) {
    case Score::focused:
    case Score::query_dependent:
      return Bound{1 - minimum.least, true};
    case Score::axis_aligned:
      return Bound{flat + minimum.least * (1 - flat), false};
    case Score::high_norm:
    case Score::low_norm:
      return std::nullopt;
    case Score::broad:
    case Score::constant:
    case Score::consistent:
    case Score::sink:
    case Score::previous:
    case Score::self:
    case Score::induction:
      return Bound{minimum.least, false};
  }
  return std::nullopt;
}

std::optional<MetricLevel> baseline_level(std::string_view metric, const BatchShape& shape, Baselines& baselines) {
  if (shape.seq_len > longest_sequence || shape.d_k > most_dimensions) return std::nullopt;
  if (metric == "k_top_energy" || metric == "k_top_share") return std::nullopt;
  const std::optional<Baseline> baseline = baselines.of(metric, shape);
  if (!baseline) return std::nullopt;
  return MetricLevel{baseline->value, fmt::format("{} {}", fmt::join(baseline->of, " "), number_text(baseline->value)),
                     false};
}

std::vector<MetricLevel> role_levels(std::string_view metric, const RoleDefinition& definition, std::int64_t d_k) {
  std::vector<std::pair<Bound, std::string>> bounds;  // with the roles that ask for it
  for (const Role& role : definition.roles)
    for (const Minimum& minimum : role.minimums) {
      const std::optional<Bound> bound = metric_of(minimum.score) == metric ? bound_of(minimum, d_k) : std::nullopt;
      if (!bound) continue;
      const std::string name = role_text(role.name);
      const auto known = std::ranges::find(bounds, *bound, &std::pair<Bound, std::string>::first);
      if (known == bounds.end())
        bounds.emplace_back(*bound, name);
      else
        known->second += ", " + name;
    }
  std::vector<MetricLevel> levels;
  for (const auto& [bound, names] : bounds)
    levels.push_back(
        {bound.value, fmt::format("{} {} {}", names, bound.highest ? "≤" : "≥", number_text(bound.value)), true});
  return levels;
}

}  // namespace

MetricLevels levels_of(const BatchShape& shape, const RoleDefinition* definition, Baselines& baselines) {
  MetricLevels levels;
  for (const Metric& metric : head_metrics()) {
    std::vector<MetricLevel>& known = levels[metric.name];
    if (auto baseline = baseline_level(metric.name, shape, baselines)) known.push_back(std::move(*baseline));
    if (definition == nullptr) continue;
    for (MetricLevel& level : role_levels(metric.name, *definition, shape.d_k)) known.push_back(std::move(level));
  }
  return levels;
}

}  // namespace headscope
