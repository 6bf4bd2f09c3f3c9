#include "heads/figures/group_figure.h"

#include <algorithm>
#include <cmath>

namespace headscope {
namespace {

// A panel, its tables and all values that must be in its y range.
struct GroupDrawing {
  GroupPanel asked;
  Panel panel = {};
  std::vector<FigureData> data = {};
  std::vector<double> values = {};
};

GroupDrawing over_tokens(const GroupPanel& asked, const TrackedMetrics& shown) {
  GroupDrawing drawing{asked};
  const std::string data = std::string(asked.metric) + (asked.growth ? "_growth" : "");
  Table table("groups");
  table.add("step", shown.steps()).add("tokens", shown.tokens());
  const auto add = [&](const std::string& name, Numbers values) {
    if (asked.growth) values = relative_to_start(std::move(values));
    drawing.values.insert(drawing.values.end(), values.begin(), values.end());
    table.add(name, values);
    return finite_count(values) > 0;
  };
  std::vector<Mark> means;
  for (const GroupLayers& group : layer_groups(shown.source->counts.layers)) {
    const std::string name(name_of(group.group));
    GroupSpread spread = group_spread(shown, asked.metric, group.group);
    const bool present = add(name, std::move(spread.mean));
    if (present)
      means.push_back(Mark::line(data, "tokens", name).coloured(depth_of(group)).wide(2).named(legend_of(group)));
    if (asked.quartiles) {
      const Mark band = Mark::band(data, "tokens", name + "_q25", name + "_q75").coloured(depth_of(group)).faded(0.2);
      add(band.low, std::move(spread.low));
      add(band.high, std::move(spread.high));
      if (present) drawing.panel.marks.push_back(band);
      continue;
    }
    for (std::int64_t layer = group.first; layer <= group.last; ++layer) {
      const std::string column = fmt::format("L{}", layer);
      if (add(column, layer_means(shown, asked.metric, layer)) && group.first != group.last)
        drawing.panel.marks.push_back(
            Mark::line(data, "tokens", column).coloured(depth_of(group)).wide(0.6).faded(0.62));
    }
  }
  drawing.panel.marks.insert(drawing.panel.marks.end(), means.begin(), means.end());
  drawing.data.push_back({data, std::move(table)});
  return drawing;
}

// The last moment. Rows are in order of layers, so those of a group follow each other.
GroupDrawing over_layers(const GroupPanel& asked, const TrackedMetrics& shown) {
  GroupDrawing drawing{asked};
  const std::string metric(asked.metric);
  const auto values = shown.source->at(metric, shown.moments.back());
  const std::int64_t layers = shown.source->counts.layers, heads = shown.source->heads_of(metric);
  Integers head_layer, head, layer;
  Numbers means;
  for (std::int64_t i = 0; i < std::ssize(values); ++i) {
    head_layer.push_back(i / heads);
    head.push_back(i % heads);
  }
  for (std::int64_t i = 0; i < layers; ++i) {
    layer.push_back(i);
    means.push_back(layer_means(shown, metric, i).back());
  }
  drawing.values.assign(values.begin(), values.end());
  drawing.data = {{metric + "_heads", Table("heads")}, {metric + "_layers", Table("layers")}};
  drawing.data[0].table.add("layer", head_layer).add("head", head).add("value", drawing.values);
  drawing.data[1].table.add("layer", layer).add("mean", means);
  std::vector<Mark> lines;
  for (const GroupLayers& group : layer_groups(layers)) {
    const auto first = static_cast<std::size_t>(group.first), last = static_cast<std::size_t>(group.last);
    if (!std::isfinite(finite_mean(std::span(means).subspan(first, last - first + 1)))) continue;
    const auto count = static_cast<std::size_t>(heads);
    drawing.panel.marks.push_back(Mark::points(metric + "_heads", "layer", "value")
                                      .coloured(depth_of(group))
                                      .faded(0.62)
                                      .sized(layers <= 24 ? 0.4 : 0.3)
                                      .of_rows(first * count, (last + 1) * count - 1));
    lines.push_back(Mark::segment(metric + "_layers", "layer", "mean", "mean")
                        .coloured(depth_of(group))
                        .wide(1.6)
                        .shifted(-0.36, 0.36)
                        .named(legend_of(group))
                        .of_rows(first, last));
  }
  drawing.panel.marks.insert(drawing.panel.marks.end(), lines.begin(), lines.end());
  drawing.panel.x = labelled(integer_axis(0, layers - 1, 16), {"layer"});
  drawing.panel.x.grid = false;
  return drawing;
}

Figure stacked(Figure figure, std::vector<GroupDrawing> drawings) {
  std::vector<double> growths;  // are compared with each other: one axis
  for (const GroupDrawing& one : drawings)
    if (one.asked.growth) growths.insert(growths.end(), one.values.begin(), one.values.end());
  const bool alone = drawings.size() == 1;
  for (GroupDrawing& one : drawings) {
    if (one.asked.growth) one.values = growths;
    one.values.push_back(one.asked.reference);
    one.panel.y = padded(round_axis(one.values, alone ? 6 : 4), 0.03);
    if (alone)
      one.panel.y.label = {one.asked.label};
    else
      one.panel.title = one.asked.label;
    if (std::isfinite(one.asked.reference)) {
      one.panel.references = {{.y = one.asked.reference}};
      one.panel.labels = {{.text = {one.asked.reference_name}, .place = Label::beside, .y = one.asked.reference}};
    }
    figure.panels.push_back(std::move(one.panel));
    figure.data.insert(figure.data.end(), one.data.begin(), one.data.end());
  }
  return figure;
}

}  // namespace

Colour depth_of(const GroupLayers& group) {
  return {.role = Colour::depth, .index = static_cast<std::size_t>(group.group)};
}

Figure group_figure(Figure figure, const RunTracks& tracks, const std::vector<GroupPanel>& panels) {
  std::vector<GroupDrawing> curves, snapshots;
  std::vector<double> moments;
  std::int64_t layers = 0;
  for (const GroupPanel& panel : panels) {
    const auto shown = tracked(tracks, {panel.metric});
    if (!shown) continue;
    layers = shown->source->counts.layers;
    if (shown->moments.size() == 1) {
      if (!panel.growth) snapshots.push_back(over_layers(panel, *shown));  // of one moment there is no growth
      continue;
    }
    GroupDrawing drawing = over_tokens(panel, *shown);
    if (drawing.panel.marks.empty()) continue;  // no growth where the start is 0
    for (const std::int64_t tokens : shown->tokens()) moments.push_back(static_cast<double>(tokens));
    curves.push_back(std::move(drawing));
  }
  const Mark line = Mark::line("", "", "");
  if (!curves.empty()) {
    for (GroupDrawing& one : curves) one.panel.x = token_axis(moments);
    const bool has_layers = layers > 3;
    if (curves[0].asked.quartiles)
      figure.kinds = {line.wide(2).named("group mean"), Mark::box("", "", "", "").faded(0.2).named("head quartiles")};
    else if (has_layers)
      figure.kinds = {line.wide(2).named("group mean"), line.wide(0.6).faded(0.62).named("layer")};
    return stacked(std::move(figure), std::move(curves));
  }
  if (snapshots.empty()) return empty_figure(figure.name, figure.title, figure.subject, not_tracked);
  figure.kinds = {line.wide(1.6).named("layer mean"), Mark::points("", "", "").sized(0.4).faded(0.62).named("head")};
  return stacked(std::move(figure), std::move(snapshots));
}

}  // namespace headscope
