#include "findings/measured.h"

#include <algorithm>
#include <cmath>

namespace headscope {
namespace {

bool has_all(const Tracks& tracks, std::initializer_list<std::string_view> metrics) {
  return std::ranges::all_of(metrics, [&](std::string_view metric) { return tracks.has(metric); });
}

}  // namespace

const Tracks& source_for(const RunTracks& run, std::initializer_list<std::string_view> metrics) {
  const Tracks& finest = run.finest();
  const Tracks& other = &finest == &run.train ? run.probe : run.train;
  return !has_all(finest, metrics) && has_all(other, metrics) ? other : finest;
}

Basis basis_of(const Tracks& tracks, std::initializer_list<std::string_view> metrics) {
  Basis basis{tracks.source, tracks.moments, {}};
  for (const std::string_view metric : metrics)
    if (!tracks.has(metric)) basis.not_tracked.emplace_back(metric);
  return basis;
}

std::span<const double> layer_at(const Tracks& tracks, std::string_view metric, std::size_t moment,
                                 std::int64_t layer) {
  if (!tracks.has(metric)) return {};
  const auto heads = static_cast<std::size_t>(tracks.heads_of(metric));
  return tracks.at(metric, moment).subspan(static_cast<std::size_t>(layer) * heads, heads);
}

std::span<const double> heads_at_start(const Tracks& tracks, std::string_view metric) {
  return tracks.has(metric) ? tracks.at(metric, 0) : std::span<const double>{};
}

std::span<const double> heads_at_end(const Tracks& tracks, std::string_view metric) {
  return tracks.has(metric) ? tracks.at(metric, tracks.moments.size() - 1) : std::span<const double>{};
}

std::vector<LayerGroup> groups_of(std::int64_t layers) {
  std::vector<LayerGroup> groups;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const LayerGroup group = layer_group(layer, layers);
    if (groups.empty() || groups.back() != group) groups.push_back(group);
  }
  return groups;
}

double group_mean(const Tracks& tracks, std::string_view metric, std::size_t moment, LayerGroup group) {
  std::vector<double> values;
  for (std::int64_t layer = 0; layer < tracks.counts.layers; ++layer) {
    if (layer_group(layer, tracks.counts.layers) != group) continue;
    const std::span<const double> heads = layer_at(tracks, metric, moment, layer);
    values.insert(values.end(), heads.begin(), heads.end());
  }
  return finite_mean(values);
}

GroupCurve group_curve(const Tracks& tracks, std::string_view metric, LayerGroup group) {
  GroupCurve curve;
  for (std::size_t moment = 0; moment < tracks.moments.size(); ++moment) {
    const double value = group_mean(tracks, metric, moment, group);
    if (moment == 0) curve.start = value;
    curve.end = value;
    if (std::isnan(value) || value >= curve.lowest) continue;
    curve.lowest = value;
    curve.lowest_at = tracks.moments[moment];
  }
  return curve;
}

}  // namespace headscope
