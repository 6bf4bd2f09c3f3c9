// The learned gain of the keys, dimension by dimension.
#include <set>

#include "core/error.h"
#include "core/missing.h"
#include "figures/panels.h"
#include "figures/table_limits.h"
#include "figures/token_axis.h"
#include "heads/figures/tracking_figures.h"
#include "heads/figures/tracking_series.h"

namespace headscope {
namespace {

constexpr char gain_label[] = "'gain γ'";
constexpr std::size_t most_gain_panels = 8;
constexpr std::size_t most_cells = 8192;  // of a panel: 64 moments of 128 dimensions

struct GainHistory {
  std::vector<std::int64_t> layers;
  std::vector<Moment> moments;
  std::size_t dimensions = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, const std::vector<double>*> gain;  // [layer, step]
};

// Layers and moments as they are drawn.
GainHistory history_of(const std::vector<LayerGains>& gains) {
  GainHistory all, shown;
  std::set<std::int64_t> layers;
  std::map<std::int64_t, Moment> moments;
  for (const LayerGains& one : gains) {
    if (one.k.empty()) continue;
    if (one.layer < 0 || one.layer >= most_layers || std::ssize(one.k) > most_dimensions)
      fail_input("a gain of {} dimensions in layer {}; figures show {} dimensions in layers 0 to {}", one.k.size(),
                 one.layer, most_dimensions, most_layers - 1);
    layers.insert(one.layer);
    moments[one.moment.step] = one.moment;
    shown.dimensions = std::max(shown.dimensions, one.k.size());
    shown.gain[{one.layer, one.moment.step}] = &one.k;
  }
  all.layers.assign(layers.begin(), layers.end());
  for (const auto& [step, moment] : moments) all.moments.push_back(moment);
  for (const std::size_t i : evenly_spaced(all.layers.size(), most_gain_panels)) shown.layers.push_back(all.layers[i]);
  const std::size_t most = std::max<std::size_t>(most_cells / std::max<std::size_t>(shown.dimensions, 1), 16);
  for (const std::size_t i : evenly_spaced(all.moments.size(), std::min<std::size_t>(most, 96)))
    shown.moments.push_back(all.moments[i]);
  return shown;
}

// Moment by moment; five decimals are more than the colours show, and half the file.
Table cells_of(const GainHistory& history, std::int64_t layer, std::vector<double>& values) {
  Integers step, place, dimension;
  Numbers value;
  for (std::size_t i = 0; i < history.moments.size(); ++i) {
    const auto found = history.gain.find({layer, history.moments[i].step});
    for (std::size_t d = 0; d < history.dimensions; ++d) {
      const bool known = found != history.gain.end() && d < found->second->size();
      step.push_back(history.moments[i].step);
      place.push_back(static_cast<std::int64_t>(i));
      dimension.push_back(static_cast<std::int64_t>(d));
      value.push_back(known ? std::round((*found->second)[d] * 1e5) / 1e5 : missing);
    }
  }
  values.insert(values.end(), value.begin(), value.end());
  Table table("gains");
  return table.add("step", step).add("moment", place).add("dimension", dimension).add("gain", value);
}

// As far below 1 as above.
Axis gain_axis(const std::vector<double>& values) {
  double most = 0.01;
  for (const double value : values)
    if (std::isfinite(value)) most = std::max(most, std::fabs(value - 1));
  most = std::min(most, 1e6);
  Axis axis;
  axis.step = round_step(most, 3);
  axis.low = 1 - most;
  axis.high = 1 + most;
  axis.first_tic = 1 - std::floor(most / axis.step + 1e-9) * axis.step;
  axis.last_tic = 1 + std::floor(most / axis.step + 1e-9) * axis.step;
  return axis;
}

// Columns are moments, which need not be equally far apart: the tics of tokens stand where they fall between them.
Script moment_tics(const std::vector<Moment>& moments, const TokenAxis& tokens, bool numbers) {
  std::vector<Script> tics;
  const auto add = [&](double at, double place) {
    const Script number = numbers ? format_script("{:.6g}", at / tokens.unit.size) : Script();
    tics.push_back(format_script("'{}' {:.6g}", number, place));
  };
  for (double at = tokens.axis.first_tic; at < tokens.axis.last_tic + tokens.axis.step / 2; at += tokens.axis.step) {
    for (std::size_t i = 1; i < moments.size(); ++i) {
      const auto low = static_cast<double>(moments[i - 1].tokens), high = static_cast<double>(moments[i].tokens);
      if (at < low || at > high || low == high || (at == low && i > 1)) continue;
      add(at, static_cast<double>(i - 1) + (at - low) / (high - low));
    }
  }
  return format_script("set xrange [-0.5:{}.5]; set xtics ({})\n", moments.size() - 1, join(tics, ", "));
}

// The gain of one moment: dimension x layer.
Figure gain_by_layer(const std::string& name, std::string_view what, std::string_view whose,
                     const std::vector<LayerGains>& gains, const Theme& theme) {
  Integers layer, dimension;
  Numbers value;
  for (const LayerGains& one : gains) {
    for (std::size_t d = 0; d < one.k.size(); ++d) {
      layer.push_back(one.layer);
      dimension.push_back(static_cast<std::int64_t>(d));
      value.push_back(one.k[d]);
    }
  }
  Table table("gains");
  table.add("layer", layer).add("dimension", dimension).add("gain", value);
  Figure figure{.name = name, .height = 330, .data = {{"gains", table}}};
  const Margins around{.left = 60, .right = 74};
  const auto [first, last] = std::ranges::minmax(layer);
  figure.setup = frame_commands(figure, around, what, whose) +
                 "unset key; unset grid; unset border\nset tics scale 0\n" +
                 axis_labels(figure, "'layer'", "'dimension'") + axis_commands("x", integer_axis(first, last, 16)) +
                 axis_commands("y", integer_axis(0, std::ranges::max(dimension), 8)) +
                 colour_bar(figure, around, gain_axis(value), gain_label, theme.diverging);
  figure.plot =
      plot_command({"gains using \"layer\":\"dimension\":(0.5):(0.5):\"gain\" with boxxyerror lc palette fs solid "
                    "noborder notitle"});
  return figure;
}

}  // namespace

Figure gamma_heatmap_figure(const TrackingFigureData& data, const Theme& theme) {
  const std::string name = "gamma_heatmap";
  const std::string_view what = "Learned key gain γ";
  const GainHistory history = history_of(data.tracks->gains);
  if (history.layers.empty()) return empty_figure(name, what, data.title, "no learned gain: the run has no QK-Norm");
  if (history.moments.size() == 1) return gain_by_layer(name, what, data.title, data.tracks->gains, theme);
  std::vector<double> values, tokens;
  for (const Moment& moment : history.moments) tokens.push_back(static_cast<double>(moment.tokens));
  std::vector<FigureData> tables;
  for (const std::int64_t layer : history.layers)
    tables.push_back({fmt::format("layer{}", layer), cells_of(history, layer, values)});

  const Margins around{.left = 60, .right = 74, .top = 54};
  const PanelGrid grid = grid_of(history.layers.size(), around);
  Figure figure = panel_figure(name, grid);
  const TokenAxis x = token_axis(tokens, history.layers.size() == 1 ? 6 : 4);
  const Script frame = frame_commands(figure, around, what, data.title) +
                       shared_labels(figure, grid, token_axis_label(x), "'dimension'") +
                       colour_bar(figure, around, gain_axis(values), gain_label, theme.diverging) +
                       format_script("set label 4 at screen {:.4f},{:.4f}\n", 1 - 10.0 / figure.width,
                                     (around.bottom + figure.height - around.top) / 2 / figure.height);
  figure.setup = "unset key; unset grid; unset border\n";
  std::vector<PanelPlot> panels;
  for (std::size_t i = 0; i < tables.size(); ++i)
    panels.push_back({fmt::format("layer {}", history.layers[i]),
                      moment_tics(history.moments, x, grid.at_bottom(i)) +
                          axis_commands("y", integer_axis(0, static_cast<std::int64_t>(history.dimensions) - 1, 5)) +
                          number_format("y", grid.at_left(i)),
                      plot_command({format_script("{} using \"moment\":\"dimension\":\"gain\" with image notitle",
                                                  gnuplot_name(tables[i].name))})});
  figure.data = std::move(tables);
  figure.plot = panel_plots(figure, grid, frame, panels);
  return figure;
}

}  // namespace headscope
