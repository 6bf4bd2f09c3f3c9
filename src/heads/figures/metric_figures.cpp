#include "heads/figures/metric_figures.h"

#include <algorithm>
#include <cmath>

#include "core/config.h"
#include "core/error.h"
#include "core/lists.h"
#include "heads/figures/tracking_series.h"

namespace headscope {
namespace {

constexpr std::size_t most_named = 6;  // as many categories stand out from the paper in both themes

struct Place {
  std::int64_t layer = 0, head = 0;
};

std::string name_of(const Metric& metric, const Place& place) {
  return head_text(metric.kind, place.layer, place.head);
}

// All heads of the chosen layers, or those that are named.
std::vector<Place> places_of(const Tracks& tracks, const Metric& metric, const MetricFigureOptions& options) {
  for (const std::int64_t layer : options.layers)
    if (layer >= tracks.counts.layers)
      fail_input("--layers: there is no layer {}; the run has 0 to {}", layer, tracks.counts.layers - 1);
  std::vector<Place> all, chosen;
  std::vector<std::string> names;
  const std::int64_t heads = tracks.heads_of(metric.name);
  for (std::int64_t i = 0; i < tracks.counts.layers * heads; ++i) {
    all.push_back({i / heads, i % heads});
    names.push_back(name_of(metric, all.back()));
  }
  for (const std::string& asked : options.heads) {
    const auto found = std::ranges::find(names, asked);
    if (found == names.end())
      fail_input("--heads: there is no head '{}'; {} is measured of {} to {}", asked, metric.name, names.front(),
                 names.back());
    chosen.push_back(all[static_cast<std::size_t>(found - names.begin())]);
  }
  if (options.heads.empty()) chosen = all;
  std::erase_if(chosen, [&](const Place& place) {
    return !options.layers.empty() && std::ranges::find(options.layers, place.layer) == options.layers.end();
  });
  if (chosen.empty()) fail_input("--heads and --layers have no head in common");
  return chosen;
}

std::string axis_label(const Metric& metric) {
  return metric.unit.empty() ? std::string(metric.name) : fmt::format("{} ({})", metric.name, metric.unit);
}

Figure curves(const Tracks& tracks, const Metric& metric, const std::vector<Place>& places,
              const std::optional<Baseline>& baseline, const std::string& title) {
  Figure figure{fmt::format("metric_{}_curves", metric.name), std::string(metric.name), title};
  figure.nothing = "one measurement: see the map";
  TrackedMetrics shown{&tracks, {}};
  for (const std::size_t place : evenly_spaced(tracks.moments.size(), most_moments)) shown.moments.push_back(place);
  Table table = shown.table();
  Panel panel{.x = shown.course().axis, .y = {.label = {axis_label(metric)}, .padding = 0.03}};
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::string name = name_of(metric, places[i]);
    table.add(name, head_values(shown, metric.name, places[i].layer, places[i].head));
    const Mark line = Mark::line("heads", shown.course().name, name);
    panel.marks.push_back(places.size() <= most_named ? line.wide(1.4).named(name).coloured(category(i))
                                                      : line.wide(0.7).coloured(by_value(places[i].layer)));
  }
  if (baseline) {
    table.add("baseline", Numbers(shown.moments.size(), baseline->value));
    panel.marks.push_back(Mark::line("heads", shown.course().name, "baseline")
                              .coloured(muted)
                              .dashed()
                              .named(fmt::format("{}", fmt::join(baseline->of, " "))));
  }
  if (shown.moments.size() > 1) {
    figure.data = {{"heads", std::move(table)}};
    figure.panels = {std::move(panel)};
    figure.colours = {ColourScale::ordered, {.kind = Axis::integers, .label = {"layer"}}};
  }
  return figure;
}

Figure map(const Tracks& tracks, const Metric& metric, const std::vector<Place>& places, const std::string& title) {
  const auto values = tracks.at(metric.name, tracks.moments.size() - 1);
  const std::int64_t heads = tracks.heads_of(metric.name);
  Integers layer, head;
  Numbers value;
  for (const Place& place : places) {
    layer.push_back(place.layer);
    head.push_back(place.head);
    value.push_back(values[static_cast<std::size_t>(place.layer * heads + place.head)]);
  }
  Table table("heads");
  table.add("layer", layer).add("head", head).add("value", value);
  Figure figure{fmt::format("metric_{}_map", metric.name), std::string(metric.name),
                title + at_step_text(tracks.moments.back())};
  figure.data = {{"heads", std::move(table)}};
  figure.panels = {{.x = {.kind = Axis::integers, .label = {"layer"}},
                    .y = {.kind = Axis::integers,
                          .label = {metric.kind == HeadKind::key ? "key head" : "query head"},
                          .reversed = true},
                    .marks = {Mark::cell("heads", "layer", "head").coloured(by_column("value"))}}};
  figure.colours = {ColourScale::sequential, {.label = {axis_label(metric)}}};
  return figure;
}

}  // namespace

std::vector<Figure> metric_figures(const RunTracks& tracks, const BatchShape& shape,
                                   const MetricFigureOptions& options) {
  const Metric& metric = metric_named(options.metric, "--metric");
  const Tracks* source = source_that_has(tracks, metric.name, options.source);
  if (source == nullptr)
    fail_input("--metric {}: was not measured{}", options.metric,
               source_that_has(tracks, metric.name, "") != nullptr
                   ? " on " + options.source + " batches; leave --source out"
                   : "; see --track of 'headscope train'");
  const std::vector<Place> places = places_of(*source, metric, options);
  const std::string title = options.title + (source == &tracks.train ? ", training batches" : "");
  return {curves(*source, metric, places, baseline_of(metric.name, shape), title), map(*source, metric, places, title)};
}

}  // namespace headscope
