// The figures of a tracked run that show single heads.
#include "figures/panels.h"
#include "figures/token_axis.h"
#include "heads/figures/group_figure.h"
#include "heads/figures/snapshot.h"
#include "heads/figures/tracking_figures.h"

namespace headscope {
namespace {

constexpr std::size_t most_panels = 8;
constexpr std::int64_t most_named_heads = 6;  // as many categories stand out from the paper in both themes

std::vector<double> as_numbers(const Integers& integers) {
  return {integers.begin(), integers.end()};
}

Table head_curves(const TrackedMetrics& shown, std::int64_t layer) {
  Table table("heads");
  table.add("step", shown.steps()).add("tokens", shown.tokens());
  for (std::int64_t head = 0; head < shown.source->counts.key_heads; ++head) {
    const auto curve = shown.source->of_head("k_norm", layer, head);
    Numbers values;
    for (const std::size_t moment : shown.moments) values.push_back(curve[moment]);
    table.add(fmt::format("H{}", head), std::move(values));
  }
  return table;
}

// A line for each head that has a value; up to six have a colour and a name each, more a place in a colour bar.
std::vector<Script> head_clauses(const std::string& data, const Table& table, bool named) {
  std::vector<Script> clauses;
  for (std::size_t column = 2; column < table.columns().size(); ++column) {
    const std::string& name = table.columns()[column].name;
    if (!std::isfinite(finite_mean(table.numbers(name)))) continue;
    const Script colour = named ? format_script("lt {}", column - 1) : format_script("lc palette cb {}", column - 2);
    clauses.push_back(format_script("{} using \"tokens\":\"{}\" with lines {} lw {} notitle", gnuplot_name(data),
                                    gnuplot_name(name), colour, named ? 1.3 : 0.9));
  }
  return clauses;
}

// Layers with a value, so that no panel is empty.
std::vector<std::int64_t> layers_to_show(const TrackedMetrics& shown, std::string_view metric) {
  std::vector<std::int64_t> present, chosen;
  for (std::int64_t layer = 0; layer < shown.source->counts.layers; ++layer)
    if (std::isfinite(finite_mean(layer_means(shown, metric, layer)))) present.push_back(layer);
  for (const std::size_t place : evenly_spaced(present.size(), most_panels)) chosen.push_back(present[place]);
  return chosen;
}

// The head names in one row, or the bar of their colours.
Script head_legend(const Figure& figure, const PanelGrid& grid, std::int64_t heads, const Theme& theme) {
  if (heads <= most_named_heads) return legend_in_rows(figure, grid.around, 1, 2);
  const double middle = (grid.around.bottom + figure.height - grid.around.top) / 2 / figure.height;
  return "unset key\n" + ordered_colours(figure, grid.around, 0, heads - 1, "'key head'", theme) +
         format_script("set label 4 at screen {:.4f},{:.4f}\n", 1 - 10.0 / figure.width, middle);
}

// The heads of one moment, with their group's colour and mark.
struct Scatter {
  std::size_t moment = 0;
  std::string name;  // of its table
  Table table = Table("heads");
};

Scatter scatter_of(const Tracks& source, std::size_t moment, std::size_t panel) {
  const auto norm = source.at("k_norm", moment), entropy = source.at("entropy", moment);
  Integers layer, head;
  Numbers x, y;
  for (std::int64_t l = 0; l < source.counts.layers; ++l) {
    for (std::int64_t h = 0; h < source.counts.query_heads; ++h) {
      const double k = norm[static_cast<std::size_t>(l * source.counts.key_heads + source.key_head_of(h))];
      const double e = entropy[static_cast<std::size_t>(l * source.counts.query_heads + h)];
      if (!std::isfinite(k) || !std::isfinite(e)) continue;
      layer.push_back(l);
      head.push_back(h);
      x.push_back(k);
      y.push_back(e);
    }
  }
  Scatter scatter{moment, fmt::format("m{}", panel)};
  scatter.table.add("layer", layer).add("q_head", head).add("k_norm", x).add("entropy", y);
  return scatter;
}

constexpr std::array<int, 3> group_marks = {7, 9, 5};  // circle, triangle, square: colours are not all

std::vector<Script> scatter_clauses(const Scatter& scatter, std::int64_t layers, double size) {
  std::vector<Script> clauses;
  const Integers& layer = scatter.table.integers("layer");
  for (const GroupLayers& group : layer_groups(layers)) {
    const auto first = std::ranges::lower_bound(layer, group.first) - layer.begin();
    const auto last = std::ranges::upper_bound(layer, group.last) - layer.begin();
    if (first == last) continue;
    clauses.push_back(
        format_script("{} every ::{}::{} using \"k_norm\":\"entropy\" with points pt {} ps {} lc rgb faded({}) notitle",
                      gnuplot_name(scatter.name), first, last - 1, group_marks[static_cast<std::size_t>(group.group)],
                      size, name_in_script(group.group)));
  }
  return clauses;
}

std::vector<Scatter> scatters_of(const TrackedMetrics& shown) {
  std::vector<Scatter> scatters;
  for (const std::size_t place : evenly_spaced(shown.moments.size(), 4)) {
    Scatter scatter = scatter_of(*shown.source, shown.moments[place], scatters.size());
    if (scatter.table.rows() > 0) scatters.push_back(std::move(scatter));
  }
  return scatters;
}

}  // namespace

Figure norm_divergence_figure(const TrackingFigureData& data, const Theme& theme) {
  const std::string name = "norm_divergence";
  const std::string_view what = "Key norm of every key head";
  const auto shown = tracked(*data.tracks, {"k_norm"});
  if (!shown) return empty_figure(name, what, data.title, not_tracked);
  if (shown->moments.size() == 1) return snapshot_figure(name, what, data.title, {{*shown, "k_norm", "‖k‖"}});
  const std::int64_t heads = shown->source->counts.key_heads;
  const bool named = heads <= most_named_heads;
  const auto layers = layers_to_show(*shown, "k_norm");

  std::vector<Table> tables;
  std::vector<double> values;
  for (const std::int64_t layer : layers) {
    tables.push_back(head_curves(*shown, layer));
    for (std::int64_t head = 0; head < heads; ++head) {
      const Numbers curve = tables.back().numbers(fmt::format("H{}", head));
      values.insert(values.end(), curve.begin(), curve.end());
    }
  }
  const Axis y = padded(round_axis(values, layers.size() == 1 ? 6 : 5), 0.03);
  const PanelGrid grid =
      grid_of(layers.size(), {.left = left_margin(y), .right = named ? 16.0 : 62.0, .top = named ? 72.0 : 54.0});
  Figure figure = panel_figure(name, grid);
  const TokenAxis x = token_axis(as_numbers(shown->tokens()), layers.size() == 1 ? 6 : 4);
  const Script frame = frame_commands(figure, grid.around, what, data.title) + head_legend(figure, grid, heads, theme) +
                       shared_labels(figure, grid, token_axis_label(x), "'mean ‖k‖'");
  std::vector<PanelPlot> panels;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string block = fmt::format("layer{}", layers[i]);
    auto clauses = head_clauses(block, tables[i], named);
    for (std::int64_t head = 0; i == 0 && named && head < heads; ++head)
      clauses.push_back(format_script("keyentry with lines lt {} lw 2 title 'H{}'", head + 1, head));
    panels.push_back(
        {fmt::format("layer {}", layers[i]),
         token_axis_commands(x, grid.at_bottom(i)) + axis_commands("y", y) + number_format("y", grid.at_left(i)),
         plot_command(clauses)});
    figure.data.push_back({block, tables[i]});
  }
  figure.plot = panel_plots(figure, grid, frame, panels);
  return figure;
}

Figure entropy_norm_figure(const TrackingFigureData& data) {
  const std::string name = "entropy_norm_scatter";
  const std::string_view what = "Entropy and key norm";
  const auto shown = tracked(*data.tracks, {"k_norm", "entropy"});
  const auto scatters = shown ? scatters_of(*shown) : std::vector<Scatter>{};
  if (scatters.empty()) return empty_figure(name, what, data.title, not_tracked);
  const HeadCounts& counts = shown->source->counts;
  std::vector<double> norms, entropies;
  for (const Scatter& scatter : scatters) {
    for (const double value : scatter.table.numbers("k_norm")) norms.push_back(value);
    for (const double value : scatter.table.numbers("entropy")) entropies.push_back(value);
  }
  const Axis x = padded(round_axis(norms, 4), 0.04), y = padded(round_axis(entropies, 5), 0.04);
  const PanelGrid grid = grid_of(scatters.size(), {.left = left_margin(y), .right = 16, .top = 72});
  Figure figure = panel_figure(name, grid);
  const Script frame = frame_commands(figure, grid.around, what, data.title) + legend_in_rows(figure, grid.around, 1) +
                       shared_labels(figure, grid, "'mean ‖k‖ of the key head'", "'attention entropy (nats)'");
  const std::int64_t heads = counts.layers * counts.query_heads;
  const double size = heads <= 64 ? 0.6 : heads <= 400 ? 0.42 : heads <= 2000 ? 0.3 : 0.18;
  const TokenUnit unit = token_unit(static_cast<double>(shown->tokens().back()));
  std::vector<PanelPlot> panels;
  for (std::size_t i = 0; i < scatters.size(); ++i) {
    auto clauses = scatter_clauses(scatters[i], counts.layers, size);
    if (i == 0)
      for (const GroupLayers& group : layer_groups(counts.layers))
        clauses.push_back(format_script("keyentry with points pt {} ps 0.6 lc rgb {} title {}",
                                        group_marks[static_cast<std::size_t>(group.group)], name_in_script(group.group),
                                        gnuplot_text(legend_of(group))));
    panels.push_back({token_text(static_cast<double>(shown->source->moments[scatters[i].moment].tokens), unit),
                      axis_commands("x", x) + axis_commands("y", y) + number_format("x", grid.at_bottom(i)) +
                          number_format("y", grid.at_left(i)),
                      plot_command(clauses)});
    figure.data.push_back({scatters[i].name, scatters[i].table});
  }
  figure.plot = panel_plots(figure, grid, frame, panels);
  return figure;
}

}  // namespace headscope
