// Metrics by group of layers: over the course of training, or of one moment against layers.
#include <algorithm>
#include <cmath>

#include "core/missing.h"
#include "heads/figures/tracking_series.h"
#include "stats/sample_moments.h"

namespace headscope {
namespace {

// Each value over the first finite one; all NaN when that is 0.
Numbers relative_to_start(Numbers values) {
  const auto start = std::ranges::find_if(values, [](double value) { return std::isfinite(value); });
  const double first = start == values.end() || *start == 0 ? missing : *start;
  for (double& value : values) value /= first;
  return values;
}

constexpr std::int64_t most_named_layers = 6;  // beside a panel

// Of at least four heads in each group.
bool has_quartiles(const GroupPanel& asked, const TrackedMetrics& shown) {
  std::int64_t least = most_layers;
  for (const GroupLayers& group : layer_groups(shown.source->counts.layers))
    least = std::min(least, group.last - group.first + 1);
  return asked.of_heads && least * shown.source->heads_of(asked.metric) >= 4;
}

// The means of groups lie above their layers or heads, or above the quartiles of their heads.
void add_over_course(Figure& figure, Panel& panel, const GroupPanel& asked, const TrackedMetrics& shown) {
  const std::string data = std::string(asked.metric) + (asked.growth ? "_growth" : "");
  Table table = shown.table();
  const auto add = [&](const std::string& name, Numbers values) {
    table.add(name, asked.growth ? relative_to_start(std::move(values)) : std::move(values));
  };
  const bool quartiles_shown = has_quartiles(asked, shown);
  std::vector<Mark> lines;
  for (const GroupLayers& group : layer_groups(shown.source->counts.layers)) {
    const std::string name(name_of(group.group));
    Numbers mean, low, high;
    for (const std::size_t moment : shown.moments) {
      const auto heads = shown.source->at(asked.metric, moment, group.first, group.last);
      const Quartiles middle = quartiles({heads.begin(), heads.end()});
      mean.push_back(finite_mean(heads));
      low.push_back(middle.low);
      high.push_back(middle.high);
    }
    add(name, std::move(mean));
    lines.push_back(of_group(Mark::line(data, shown.course().name, name), group).wide(2));
    if (quartiles_shown) {
      const Mark band = Mark::band(data, shown.course().name, name + "_q25", name + "_q75");
      add(band.low, std::move(low));
      add(band.high, std::move(high));
      panel.marks.push_back(of_group(band, group).named("").faded(0.2));
    }
  }
  for (const GroupLayers& group : layer_groups(shown.source->counts.layers)) {
    const auto add_thin = [&](const std::string& column, Numbers values) {
      add(column, std::move(values));
      panel.marks.push_back(
          of_group(Mark::line(data, shown.course().name, column), group).named("").wide(0.6).faded(0.75));
    };
    for (std::int64_t layer = group.first; layer <= group.last; ++layer) {
      if (asked.of_heads) {
        for (std::int64_t head = 0; !quartiles_shown && head < shown.source->heads_of(asked.metric); ++head)
          add_thin(head_text(HeadKind::key, layer, head), head_values(shown, asked.metric, layer, head));
        continue;
      }
      const std::string column = fmt::format("L{}", layer);
      add_thin(column, layer_means(shown, asked.metric, layer));
      if (group.first == group.last)
        panel.marks.pop_back();  // the group's mean
      else if (shown.source->counts.layers <= most_named_layers)
        panel.labels.push_back({.text = {column},
                                .place = Label::beside,
                                .y = table.numbers(column).back(),
                                .colour = panel.marks.back().colour});
    }
  }
  panel.x = shown.course().axis;
  panel.marks.insert(panel.marks.end(), lines.begin(), lines.end());
  figure.data.push_back({data, std::move(table)});
}

// The last moment. Rows are in order of layers, so those of a group follow each other.
void add_over_layers(Figure& figure, Panel& panel, const GroupPanel& asked, const TrackedMetrics& shown) {
  const std::string metric(asked.metric);
  const auto values = shown.source->at(metric, shown.moments.back());
  const std::int64_t layers = shown.source->counts.layers, heads = shown.source->heads_of(metric);
  Integers layer;
  Numbers means;
  for (std::int64_t i = 0; i < layers; ++i) {
    layer.push_back(i);
    means.push_back(layer_means(shown, metric, i).back());
  }
  Table of_heads = head_table(layers, heads, "head"), of_layers("layers");
  of_heads.add("value", Numbers(values.begin(), values.end()));
  of_layers.add("layer", layer).add("mean", means);
  figure.data.push_back({metric + "_heads", std::move(of_heads)});
  figure.data.push_back({metric + "_layers", std::move(of_layers)});
  std::vector<Mark> lines;
  for (const GroupLayers& group : layer_groups(layers)) {
    const Mark head = Mark::points(metric + "_heads", "layer", "value").faded(0.62);
    const Mark line = Mark::segment(metric + "_layers", "layer", "mean", "mean").wide(1.6).shifted(-0.36, 0.36);
    panel.marks.push_back(of_group(head, group, heads).named(""));
    lines.push_back(of_group(line, group, 1));
  }
  panel.x = {.kind = Axis::integers, .label = {"layer"}, .grid = false};
  panel.marks.insert(panel.marks.end(), lines.begin(), lines.end());
}

}  // namespace

Figure group_figure(Figure figure, const RunTracks& tracks, const std::vector<GroupPanel>& panels) {
  bool one_moment = true;  // of one moment there is no growth
  for (const GroupPanel& asked : panels)
    if (const auto shown = tracked(tracks, {asked.metric})) one_moment = one_moment && shown->moments.size() == 1;
  for (const GroupPanel& asked : panels) {
    const auto shown = tracked(tracks, {asked.metric});
    if (!shown || (shown->moments.size() == 1) != one_moment || (one_moment && asked.growth)) continue;
    Panel panel{.title = asked.label, .references = asked.references};
    panel.y = {.padding = 0.03, .group = asked.growth ? panels.size() : figure.panels.size()};
    const Mark line = Mark::line("", "", ""), mean = line.wide(2).named("group mean");
    if (one_moment) {
      add_over_layers(figure, panel, asked, *shown);
      figure.kinds = {line.wide(1.6).named("layer mean"), Mark::points("", "", "").faded(0.62).named("head")};
    } else {
      add_over_course(figure, panel, asked, *shown);
      if (has_quartiles(asked, *shown))
        figure.kinds = {mean, Mark::box("", "", "", "").faded(0.2).named("middle 50 % of heads")};
      else if (asked.of_heads || shown->source->counts.layers > 3)
        figure.kinds = {mean, line.wide(0.6).faded(0.75).named(asked.of_heads ? "each head" : "each layer")};
    }
    figure.panels.push_back(std::move(panel));
  }
  if (figure.panels.size() == 1) figure.panels[0].y.label = {std::exchange(figure.panels[0].title, "")};
  figure.grid.columns = 1;
  return figure;
}

}  // namespace headscope
