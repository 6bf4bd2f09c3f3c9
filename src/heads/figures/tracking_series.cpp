#include "heads/figures/tracking_series.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/lists.h"
#include "core/missing.h"
#include "figures/figure.h"
#include "figures/table_limits.h"

namespace headscope {
namespace {

bool any_finite(std::span<const double> values) {
  return std::ranges::any_of(values, [](double value) { return std::isfinite(value); });
}

}  // namespace

Integers TrackedMetrics::tokens() const {
  Integers tokens;
  for (const std::size_t moment : moments) tokens.push_back(source->moments[moment].tokens);
  return tokens;
}

Integers TrackedMetrics::steps() const {
  Integers steps;
  for (const std::size_t moment : moments) steps.push_back(source->moments[moment].step);
  return steps;
}

std::optional<TrackedMetrics> tracked(const RunTracks& tracks, const std::vector<std::string_view>& metrics,
                                      std::size_t most) {
  for (const Tracks* source : {&tracks.finest(), &tracks.other()}) {
    if (!source->has_all(metrics)) continue;
    const HeadCounts& counts = source->counts;
    if (counts.layers > most_layers || counts.key_heads > most_heads || counts.query_heads > most_heads)
      fail_input("{} layers of {} key heads and {} query heads; figures show {} layers of {} heads", counts.layers,
                 counts.key_heads, counts.query_heads, most_layers, most_heads);
    const auto was_measured = [&](std::size_t moment) {
      return std::ranges::all_of(metrics,
                                 [&](std::string_view metric) { return any_finite(source->at(metric, moment)); });
    };
    std::vector<std::size_t> measured;
    for (std::size_t moment = 0; moment < source->moments.size(); ++moment)
      if (was_measured(moment)) measured.push_back(moment);
    if (measured.empty()) continue;
    TrackedMetrics shown{source, {}};
    for (const std::size_t place : evenly_spaced(measured.size(), most)) shown.moments.push_back(measured[place]);
    return shown;
  }
  return std::nullopt;
}

Numbers layer_means(const TrackedMetrics& shown, std::string_view metric, std::int64_t layer) {
  Numbers means;
  for (const std::size_t moment : shown.moments)
    means.push_back(finite_mean(shown.source->at(metric, moment, layer, layer)));
  return means;
}

GroupSpread group_spread(const TrackedMetrics& shown, std::string_view metric, LayerGroup group) {
  GroupSpread spread;
  for (const GroupLayers& layers : layer_groups(shown.source->counts.layers)) {
    if (layers.group != group) continue;
    for (const std::size_t moment : shown.moments) {
      const auto heads = shown.source->at(metric, moment, layers.first, layers.last);
      const Quartiles middle = quartiles({heads.begin(), heads.end()});
      spread.mean.push_back(finite_mean(heads));
      spread.low.push_back(middle.low);
      spread.high.push_back(middle.high);
    }
  }
  return spread;
}

Numbers relative_to_start(Numbers values) {
  const auto start = std::ranges::find_if(values, [](double value) { return std::isfinite(value); });
  const double first = start == values.end() || *start == 0 ? missing : *start;
  for (double& value : values) value /= first;
  return values;
}

std::string legend_of(const GroupLayers& group) {
  return group.first == group.last ? fmt::format("{} L{}", name_of(group.group), group.first)
                                   : fmt::format("{} L{}–{}", name_of(group.group), group.first, group.last);
}

}  // namespace headscope
