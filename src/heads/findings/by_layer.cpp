#include "heads/findings/by_layer.h"

#include <algorithm>

namespace headscope {
namespace {

using nlohmann::ordered_json;
using enum MetricGroup;

// Groups of metrics that share a table: a page is some seven columns wide.
const std::vector<std::vector<MetricGroup>> metric_tables = {
    {norm}, {outlier}, {rank, redundancy}, {attention}, {pattern, induction}, {other_rank, score}};

std::vector<double> layer_means(const Tracks& tracks, std::string_view metric, std::size_t moment) {
  std::vector<double> means;
  for (std::int64_t layer = 0; layer < tracks.counts.layers; ++layer)
    means.push_back(finite_mean(tracks.at(metric, moment, layer, layer)));
  return means;
}

std::string table_of(const ByLayer& found, std::span<const MetricGroup> groups) {
  Row head = {"layer"};
  std::vector<Row> rows(static_cast<std::size_t>(found.layers));
  for (std::size_t layer = 0; layer < rows.size(); ++layer) rows[layer].push_back(std::to_string(layer));
  for (const LayerMeans& one : found.means) {
    if (std::ranges::find(groups, one.metric->group) == groups.end()) continue;
    head.push_back(fmt::format("`{}`", one.metric->name));
    for (std::size_t layer = 0; layer < rows.size(); ++layer)
      rows[layer].push_back(found.basis.has_course()
                                ? fmt::format("{} → {}", number_text(one.start[layer]), number_text(one.end[layer]))
                                : number_text(one.end[layer]));
  }
  return head.size() == 1 ? "" : table_text(head, rows);
}

}  // namespace

ByLayer find_by_layer(const RunTracks& run) {
  const Tracks& tracks = main_source(run);
  ByLayer found{basis_of(tracks, {}), tracks.counts.layers, {}};
  for (const Metric& metric : head_metrics())
    if (metric.averaged && tracks.has(metric.name))
      found.means.push_back(
          {&metric, layer_means(tracks, metric.name, 0), layer_means(tracks, metric.name, tracks.moments.size() - 1)});
  return found;
}

ordered_json to_json(const ByLayer& found) {
  ordered_json layers = ordered_json::array();
  for (std::int64_t layer = 0; layer < found.layers; ++layer) {
    const auto place = static_cast<std::size_t>(layer);
    ordered_json object = {{"layer", layer}};
    for (const LayerMeans& one : found.means)
      object[std::string(one.metric->name)] = {{"start", one.start[place]}, {"end", one.end[place]}};
    layers.push_back(std::move(object));
  }
  const bool any = !found.basis.moments.empty();
  return {{"source", any ? ordered_json(found.basis.source) : ordered_json()},
          {"start", any ? moment_json(found.basis.moments.front()) : ordered_json()},
          {"end", any ? moment_json(found.basis.moments.back()) : ordered_json()},
          {"layers", layers}};
}

std::string tables_of(const ByLayer& found) {
  std::string text;
  for (const std::vector<MetricGroup>& groups : metric_tables) text += table_of(found, groups);
  return text;
}

}  // namespace headscope
