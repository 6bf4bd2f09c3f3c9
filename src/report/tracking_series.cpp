#include "report/tracking_series.h"

#include "report/panels.h"

namespace headscope {
namespace {

bool any_finite(std::span<const double> values) {
  return std::ranges::any_of(values, [](double value) { return std::isfinite(value); });
}

bool has_all(const Tracks& source, const std::vector<std::string_view>& metrics) {
  return std::ranges::all_of(metrics, [&](std::string_view metric) { return source.has(metric); });
}

// The heads of some layers at one moment.
std::span<const double> heads_at(const TrackedMetrics& shown, std::string_view metric, std::size_t moment,
                                 std::int64_t first_layer, std::int64_t last_layer) {
  const auto heads = static_cast<std::size_t>(shown.source->heads_of(metric));
  return shown.source->at(metric, moment)
      .subspan(static_cast<std::size_t>(first_layer) * heads,
               static_cast<std::size_t>(last_layer - first_layer + 1) * heads);
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
  const Tracks& finest = tracks.finest();
  const Tracks& other = &finest == &tracks.train ? tracks.probe : tracks.train;
  for (const Tracks* source : {&finest, &other}) {
    if (!has_all(*source, metrics)) continue;
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
    means.push_back(finite_mean(heads_at(shown, metric, moment, layer, layer)));
  return means;
}

GroupSpread group_spread(const TrackedMetrics& shown, std::string_view metric, LayerGroup group) {
  GroupSpread spread;
  for (const GroupLayers& layers : layer_groups(shown.source->counts.layers)) {
    if (layers.group != group) continue;
    for (const std::size_t moment : shown.moments) {
      const auto heads = heads_at(shown, metric, moment, layers.first, layers.last);
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
  const double first = start == values.end() || *start == 0 ? missing_value : *start;
  for (double& value : values) value /= first;
  return values;
}

std::string GroupLayers::legend() const {
  return first == last ? fmt::format("{} L{}", name(), first) : fmt::format("{} L{}–{}", name(), first, last);
}

std::vector<GroupLayers> layer_groups(std::int64_t layers) {
  std::vector<GroupLayers> groups;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const LayerGroup group = layer_group(layer, layers);
    if (groups.empty() || groups.back().group != group) groups.push_back({group, layer, layer});
    groups.back().last = layer;
  }
  return groups;
}

}  // namespace headscope
