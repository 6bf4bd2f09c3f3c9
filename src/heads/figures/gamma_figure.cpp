// The learned gain of the keys, dimension by dimension.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "core/lists.h"
#include "core/missing.h"
#include "figures/table_limits.h"
#include "heads/figures/tracking_figures.h"

namespace headscope {
namespace {

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
  GainHistory shown;
  std::set<std::int64_t> all;
  std::map<std::int64_t, Moment> by_step;
  for (const LayerGains& one : gains) {
    if (one.k.empty()) continue;
    if (one.layer < 0 || one.layer >= most_layers || std::ssize(one.k) > most_dimensions)
      fail_input("a gain of {} dimensions in layer {}; figures show {} dimensions in layers 0 to {}", one.k.size(),
                 one.layer, most_dimensions, most_layers - 1);
    all.insert(one.layer);
    by_step[one.moment.step] = one.moment;
    shown.dimensions = std::max(shown.dimensions, one.k.size());
    shown.gain[{one.layer, one.moment.step}] = &one.k;
  }
  const std::vector<std::int64_t> layers(all.begin(), all.end());
  std::vector<Moment> moments;
  for (const auto& [step, moment] : by_step) moments.push_back(moment);
  for (const std::size_t i : evenly_spaced(layers.size(), most_gain_panels)) shown.layers.push_back(layers[i]);
  const std::size_t most = std::max<std::size_t>(most_cells / std::max<std::size_t>(shown.dimensions, 1), 16);
  for (const std::size_t i : evenly_spaced(moments.size(), std::min<std::size_t>(most, 96)))
    shown.moments.push_back(moments[i]);
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

// Columns are moments, which need not be equally far apart: the tics of tokens stand where they fall between them.
Axis moment_axis(const std::vector<Moment>& moments, int max_steps) {
  std::vector<double> tokens;
  for (const Moment& moment : moments) tokens.push_back(static_cast<double>(moment.tokens));
  Axis axis = token_axis(tokens, max_steps);
  std::vector<Tic> tics;
  for (const Tic& tic : axis.tics) {
    for (std::size_t i = 1; i < tokens.size(); ++i) {
      const double low = tokens[i - 1], high = tokens[i];
      if (tic.at < low || tic.at > high || low == high || (tic.at == low && i > 1)) continue;
      tics.push_back({static_cast<double>(i - 1) + (tic.at - low) / (high - low), tic.text});
    }
  }
  return {-0.5, static_cast<double>(moments.size()) - 0.5, std::move(tics), axis.label};
}

// The gain of one moment: dimension x layer.
Panel gain_by_layer(const std::vector<LayerGains>& gains, Figure& figure, std::vector<double>& values) {
  Integers layer, dimension;
  for (const LayerGains& one : gains) {
    for (std::size_t d = 0; d < one.k.size(); ++d) {
      layer.push_back(one.layer);
      dimension.push_back(static_cast<std::int64_t>(d));
      values.push_back(one.k[d]);
    }
  }
  Table table("gains");
  table.add("layer", layer).add("dimension", dimension).add("gain", values);
  figure.data = {{"gains", std::move(table)}};
  const auto [first, last] = std::ranges::minmax(layer);
  return {.x = labelled(integer_axis(first, last, 16), {"layer"}),
          .y = integer_axis(0, std::ranges::max(dimension), 8),
          .marks = {Mark::cell("gains", "layer", "dimension").coloured(by_column("gain"))}};
}

}  // namespace

Figure gamma_heatmap_figure(const TrackingFigureData& data) {
  Figure figure{"gamma_heatmap", "Learned key gain γ", data.title};
  const GainHistory history = history_of(data.tracks->gains);
  if (history.layers.empty())
    return empty_figure(figure.name, figure.title, data.title, "no learned gain: the run has no QK-Norm");
  std::vector<double> values;
  if (history.moments.size() == 1) {
    figure.panels.push_back(gain_by_layer(data.tracks->gains, figure, values));
  } else {
    const int max_steps = history.layers.size() == 1 ? 6 : 4;
    for (const std::int64_t layer : history.layers) {
      const std::string name = fmt::format("layer{}", layer);
      figure.data.push_back({name, cells_of(history, layer, values)});
      figure.panels.push_back({.title = fmt::format("layer {}", layer),
                               .x = moment_axis(history.moments, max_steps),
                               .y = integer_axis(0, static_cast<std::int64_t>(history.dimensions) - 1, 5),
                               .marks = {Mark::image(name, "moment", "dimension").coloured(by_column("gain"))}});
    }
  }
  for (Panel& panel : figure.panels) panel.y.label = {"dimension"};
  figure.colours = {ColourScale::diverging, labelled(symmetric_axis(values, 1, 0.01), {"gain γ"})};
  figure.grid = grid_of(figure.panels.size());
  return figure;
}

}  // namespace headscope
