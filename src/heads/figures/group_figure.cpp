#include "heads/figures/group_figure.h"

#include "figures/panels.h"
#include "figures/token_axis.h"
#include "heads/figures/snapshot.h"

namespace headscope {
namespace {

// A panel with its values.
struct Drawing {
  GroupPanel panel;
  TrackedMetrics shown;
  std::vector<GroupLayers> groups;
  std::string data = {};  // name of its table
  Table table = Table("groups");
  std::vector<double> values = {};  // all that must be in the y range

  // Growth has none where the start is 0.
  [[nodiscard]] bool has_values() const {
    return std::ranges::any_of(groups, [&](const GroupLayers& group) { return has_values(name_of(group.group)); });
  }
  [[nodiscard]] bool has_values(std::string_view column) const {
    return std::ranges::any_of(table.numbers(column), [](double value) { return std::isfinite(value); });
  }
};

std::string layer_name(std::int64_t layer) {
  return fmt::format("L{}", layer);
}

void add_column(Drawing& drawing, const std::string& name, Numbers values) {
  drawing.values.insert(drawing.values.end(), values.begin(), values.end());
  drawing.table.add(name, std::move(values));
}

Drawing drawing_of(const GroupPanel& panel, const TrackedMetrics& shown) {
  Drawing drawing{.panel = panel, .shown = shown, .groups = layer_groups(shown.source->counts.layers)};
  drawing.data = std::string(panel.metric) + (panel.growth ? "_growth" : "");
  drawing.table.add("step", shown.steps()).add("tokens", shown.tokens());
  const auto scaled = [&](Numbers values) { return panel.growth ? relative_to_start(std::move(values)) : values; };
  for (const GroupLayers& group : drawing.groups) {
    const std::string name(name_of(group.group));
    GroupSpread spread = group_spread(shown, panel.metric, group.group);
    add_column(drawing, name, scaled(std::move(spread.mean)));
    if (panel.quartiles) {
      add_column(drawing, name + "_q25", std::move(spread.low));
      add_column(drawing, name + "_q75", std::move(spread.high));
    }
  }
  if (!panel.quartiles)
    for (std::int64_t layer = 0; layer < shown.source->counts.layers; ++layer)
      add_column(drawing, layer_name(layer), scaled(layer_means(shown, panel.metric, layer)));
  drawing.values.push_back(panel.reference.value);
  return drawing;
}

// The names of a group's layers that have values, for gnuplot's `for [layer in '...']`.
Script layer_list(const Drawing& drawing, const GroupLayers& group) {
  std::vector<Script> names;
  for (std::int64_t layer = group.first; layer <= group.last; ++layer)
    if (drawing.has_values(layer_name(layer))) names.push_back(format_script("L{}", layer));
  return join(names, " ");
}

std::vector<Script> curves_of(const Drawing& drawing) {
  std::vector<Script> behind, means;
  const Script data = gnuplot_name(drawing.data);
  for (const GroupLayers& group : drawing.groups) {
    if (!drawing.has_values(name_of(group.group))) continue;
    const Script name = name_in_script(group.group);
    if (drawing.panel.quartiles) {
      behind.push_back(format_script(
          "{0} using \"tokens\":\"{1}_q25\":\"{1}_q75\" with filledcurves lc rgb {1} fs transparent solid "
          "0.2 noborder notitle",
          data, name));
    } else if (group.first != group.last) {
      behind.push_back(format_script(
          "for [layer in '{}'] {} using \"tokens\":(column(layer)) with lines lc rgb faded({}) lw 0.6 notitle",
          layer_list(drawing, group), data, name));
    }
    means.push_back(format_script("{0} using \"tokens\":\"{1}\" with lines lc rgb {1} lw 2 notitle", data, name));
  }
  behind.insert(behind.end(), means.begin(), means.end());
  behind.push_back(drawing.panel.reference.clause());
  return behind;
}

// Groups above, kinds of lines below.
std::vector<Script> keys_of(const Drawing& drawing, int& rows) {
  std::vector<Script> groups, kinds;
  bool layers = false;
  for (const GroupLayers& group : drawing.groups) {
    groups.push_back(format_script("keyentry with lines lc rgb {} lw 2 title {}", name_in_script(group.group),
                                   gnuplot_text(legend_of(group))));
    layers = layers || group.first != group.last;
  }
  if (drawing.panel.quartiles || layers) kinds.emplace_back("keyentry with lines lc rgb ink lw 2 title 'group mean'");
  if (drawing.panel.quartiles)
    kinds.emplace_back("keyentry with boxes lc rgb ink fs transparent solid 0.2 noborder title 'head quartiles'");
  else if (layers)
    kinds.emplace_back("keyentry with lines lc rgb faded(ink) lw 0.6 title 'layer'");
  rows = kinds.empty() ? 1 : 2;
  return kinds.empty() ? groups : keys_in_two_rows(groups, kinds);
}

// Growths are compared with each other: one axis.
void share_growth_axis(std::vector<Drawing>& drawings) {
  std::vector<double> all;
  for (const Drawing& drawing : drawings)
    if (drawing.panel.growth) all.insert(all.end(), drawing.values.begin(), drawing.values.end());
  for (Drawing& drawing : drawings)
    if (drawing.panel.growth) drawing.values = all;
}

Figure curves_figure(const std::string& name, std::string_view what, std::string_view whose,
                     std::vector<Drawing>& drawings) {
  share_growth_axis(drawings);
  const bool alone = drawings.size() == 1;
  std::vector<Axis> axes;
  std::vector<double> moments;
  double left = 0, right = 0;
  for (const Drawing& drawing : drawings) {
    axes.push_back(padded(round_axis(drawing.values, alone ? 6 : 4), 0.03));
    left = std::max(left, left_margin(axes.back()) - (alone ? 0 : 16));
    for (const std::int64_t tokens : drawing.shown.tokens()) moments.push_back(static_cast<double>(tokens));
    right = std::max(right, drawing.panel.reference.margin());
  }
  int rows = 1;
  const auto keys = keys_of(drawings[0], rows);
  const PanelGrid grid = stacked_grid(drawings.size(), {.left = left, .right = right, .top = 36.0 + 15 * rows});
  Figure figure = panel_figure(name, grid);
  const TokenAxis x = token_axis(moments);
  const Script y_label = alone ? gnuplot_text(drawings[0].panel.label) : Script("''");
  const Script frame = frame_commands(figure, grid.around, what, whose) + legend_in_rows(figure, grid.around, rows, 1) +
                       shared_labels(figure, grid, token_axis_label(x), y_label);
  std::vector<PanelPlot> panels;
  for (std::size_t i = 0; i < drawings.size(); ++i) {
    const Drawing& drawing = drawings[i];
    auto clauses = curves_of(drawing);
    if (i == 0) clauses.insert(clauses.end(), keys.begin(), keys.end());
    panels.push_back(
        {alone ? "" : std::string(drawing.panel.label),
         token_axis_commands(x, grid.at_bottom(i)) + axis_commands("y", axes[i]) + drawing.panel.reference.command(),
         plot_command(clauses)});
    figure.data.push_back({drawing.data, drawing.table});
  }
  figure.plot = panel_plots(figure, grid, frame, panels);
  return figure;
}

}  // namespace

Figure group_figure(const std::string& name, std::string_view what, std::string_view whose, const RunTracks& tracks,
                    const std::vector<GroupPanel>& panels) {
  std::vector<Drawing> drawings;
  std::vector<SnapshotPanel> snapshots;
  for (const GroupPanel& panel : panels) {
    const auto shown = tracked(tracks, {panel.metric});
    if (!shown) continue;
    if (shown->moments.size() == 1) {
      if (!panel.growth)
        snapshots.push_back({*shown, panel.metric, panel.label, panel.reference});  // of one moment there is no growth
      continue;
    }
    Drawing drawing = drawing_of(panel, *shown);
    if (drawing.has_values()) drawings.push_back(std::move(drawing));
  }
  if (!drawings.empty()) return curves_figure(name, what, whose, drawings);
  if (!snapshots.empty()) return snapshot_figure(name, what, whose, snapshots);
  return empty_figure(name, what, whose, not_tracked);
}

}  // namespace headscope
