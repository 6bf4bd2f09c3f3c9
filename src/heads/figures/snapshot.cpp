#include "heads/figures/snapshot.h"

#include "core/missing.h"

namespace headscope {
namespace {

// A column for each group, with values in its own layers.
class GroupColumns {
 public:
  void add(LayerGroup group, double value) {
    for (std::size_t i = 0; i < columns_.size(); ++i)
      columns_[i].push_back(i == static_cast<std::size_t>(group) ? value : missing);
  }
  void add_to(Table& table) const {
    for (std::size_t i = 0; i < columns_.size(); ++i) table.add(std::string(layer_group_names[i]), columns_[i]);
  }

 private:
  std::array<Numbers, layer_group_names.size()> columns_;
};

Table head_table(const SnapshotPanel& panel, std::span<const double> values, std::int64_t heads) {
  Integers layer, head;
  GroupColumns columns;
  for (std::size_t i = 0; i < values.size(); ++i) {
    layer.push_back(static_cast<std::int64_t>(i) / heads);
    head.push_back(static_cast<std::int64_t>(i) % heads);
    columns.add(layer_group(layer.back(), panel.shown.source->counts.layers), values[i]);
  }
  Table table("heads");
  table.add("layer", layer).add("head", head);
  columns.add_to(table);
  return table;
}

Table layer_table(const SnapshotPanel& panel) {
  Integers layer;
  GroupColumns columns;
  const std::int64_t layers = panel.shown.source->counts.layers;
  for (std::int64_t i = 0; i < layers; ++i) {
    layer.push_back(i);
    columns.add(layer_group(i, layers), layer_means(panel.shown, panel.metric, i).back());
  }
  Table table("layers");
  table.add("layer", layer);
  columns.add_to(table);
  return table;
}

std::vector<Script> clauses_of(const SnapshotPanel& panel, const Table& layers) {
  std::vector<Script> heads, means;
  const Script metric = gnuplot_name(panel.metric);
  const double size = layers.rows() <= 24 ? 0.4 : 0.3;
  for (const GroupLayers& group : layer_groups(panel.shown.source->counts.layers)) {
    if (!std::isfinite(finite_mean(layers.numbers(name_of(group.group))))) continue;
    const Script name = name_in_script(group.group);
    heads.push_back(format_script("{0}_heads using \"layer\":\"{1}\" with points pt 7 ps {2} lc rgb faded({1}) notitle",
                                  metric, name, size));
    means.push_back(
        format_script("{0}_layers using (column(\"layer\")-0.36):\"{1}\":(0.72):(0) with vectors nohead lc rgb {1} "
                      "lw 1.6 notitle",
                      metric, name));
  }
  heads.insert(heads.end(), means.begin(), means.end());
  heads.push_back(panel.reference.clause());
  return heads;
}

std::vector<Script> keys(std::int64_t layers) {
  std::vector<Script> groups;
  for (const GroupLayers& group : layer_groups(layers))
    groups.push_back(format_script("keyentry with lines lc rgb {} lw 2 title {}", name_in_script(group.group),
                                   gnuplot_text(legend_of(group))));
  const Script kinds[] = {"keyentry with lines lc rgb ink lw 1.6 title 'layer mean'",
                          "keyentry with points pt 7 ps 0.4 lc rgb faded(ink) title 'head'"};
  return keys_in_two_rows(groups, kinds);
}

}  // namespace

Figure snapshot_figure(const std::string& name, std::string_view what, std::string_view whose,
                       const std::vector<SnapshotPanel>& snapshots) {
  const bool alone = snapshots.size() == 1;
  std::vector<Axis> axes;
  double left = 0, right = 0;
  for (const SnapshotPanel& panel : snapshots) {
    const auto values = panel.shown.source->at(panel.metric, panel.shown.moments.back());
    std::vector<double> shown(values.begin(), values.end());
    shown.push_back(panel.reference.value);
    axes.push_back(padded(round_axis(shown, alone ? 6 : 4), 0.03));
    left = std::max(left, left_margin(axes.back()) - (alone ? 0 : 16));
    right = std::max(right, panel.reference.margin());
  }
  const PanelGrid grid = stacked_grid(snapshots.size(), {.left = left, .right = right, .top = 66});
  Figure figure = panel_figure(name, grid);
  const Script frame = frame_commands(figure, grid.around, what, whose) + legend_in_rows(figure, grid.around, 2, 1) +
                       shared_labels(figure, grid, "'layer'", alone ? gnuplot_text(snapshots[0].label) : Script("''"));
  const std::int64_t layers = snapshots[0].shown.source->counts.layers;
  std::vector<PanelPlot> panels;
  for (std::size_t i = 0; i < snapshots.size(); ++i) {
    const SnapshotPanel& panel = snapshots[i];
    const Table means = layer_table(panel);
    const std::string metric(panel.metric);
    figure.data.push_back(
        {metric + "_heads", head_table(panel, panel.shown.source->at(panel.metric, panel.shown.moments.back()),
                                       panel.shown.source->heads_of(panel.metric))});
    figure.data.push_back({metric + "_layers", means});
    auto clauses = clauses_of(panel, means);
    if (i == 0)
      for (const Script& key : keys(layers)) clauses.push_back(key);
    panels.push_back({alone ? "" : std::string(panel.label),
                      axis_commands("x", integer_axis(0, layers - 1, 16)) + number_format("x", grid.at_bottom(i)) +
                          "set grid noxtics ytics\n" + axis_commands("y", axes[i]) + panel.reference.command(),
                      plot_command(clauses)});
  }
  figure.plot = panel_plots(figure, grid, frame, panels);
  return figure;
}

}  // namespace headscope
