// The learned gain of the keys, dimension by dimension.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "core/lists.h"
#include "core/missing.h"
#include "heads/figures/tracking_series.h"

namespace headscope {
namespace {

constexpr std::int64_t most_dimensions = 4096;  // of a head
constexpr std::size_t most_cells = 8192;        // of a panel: 64 moments of 128 dimensions

struct GainHistory {
  std::set<std::int64_t> layers;
  std::vector<Moment> moments;
  std::size_t dimensions = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, const std::vector<double>*> gain;  // [layer, step]
};

GainHistory history_of(const std::vector<LayerGains>& gains) {
  GainHistory history;
  std::map<std::int64_t, Moment> by_step;
  for (const LayerGains& one : gains) {
    if (one.k.empty()) continue;
    if (one.layer < 0 || one.layer >= most_layers || std::ssize(one.k) > most_dimensions)
      fail_input("a gain of {} dimensions in layer {}; figures show {} dimensions in layers 0 to {}", one.k.size(),
                 one.layer, most_dimensions, most_layers - 1);
    history.layers.insert(one.layer);
    by_step[one.moment.step] = one.moment;
    history.dimensions = std::max(history.dimensions, one.k.size());
    history.gain[{one.layer, one.moment.step}] = &one.k;
  }
  std::vector<Moment> moments;
  for (const auto& [step, moment] : by_step) moments.push_back(moment);
  const std::size_t most = std::max<std::size_t>(most_cells / std::max<std::size_t>(history.dimensions, 1), 16);
  for (const std::size_t i : evenly_spaced(moments.size(), std::min<std::size_t>(most, 96)))
    history.moments.push_back(moments[i]);
  return history;
}

// Moment by moment; five decimals are more than the colours show, and half the file.
Table cells_of(const GainHistory& history, std::int64_t layer) {
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
  Table table("gains");
  return table.add("step", step).add("moment", place).add("dimension", dimension).add("gain", value);
}

// Columns are moments, which need not be equally far apart: the tics stand where they fall between them.
Axis moment_axis(const std::vector<Moment>& moments, int steps) {
  const Course reached = course_of(moments);
  std::vector<double> course;
  Extent range;
  for (const Moment& moment : moments) range.add(course.emplace_back(static_cast<double>(reached.at(moment))));
  Axis axis = fitted(course_column(moments).axis, range, steps);
  axis.log = false;  // places of moments
  axis.low = -0.5;
  axis.high = static_cast<double>(moments.size()) - 0.5;
  for (const Tic& tic : std::exchange(axis.tics, {})) {
    for (std::size_t i = 1; i < course.size(); ++i) {
      const double low = course[i - 1], high = course[i];
      if (tic.at < low || tic.at > high || low == high || (tic.at == low && i > 1)) continue;
      axis.tics.push_back({static_cast<double>(i - 1) + (tic.at - low) / (high - low), tic.text});
    }
  }
  return axis;
}

// The gain of one moment: dimension x layer.
void add_by_layer(Figure& figure, const std::vector<LayerGains>& gains) {
  Integers layer, dimension;
  Numbers gain;
  for (const LayerGains& one : gains) {
    for (std::size_t d = 0; d < one.k.size(); ++d) {
      layer.push_back(one.layer);
      dimension.push_back(static_cast<std::int64_t>(d));
      gain.push_back(one.k[d]);
    }
  }
  Table table("gains");
  figure.data = {{"gains", table.add("layer", layer).add("dimension", dimension).add("gain", gain)}};
  figure.panels = {{.x = {.kind = Axis::integers, .label = {"layer"}},
                    .marks = {Mark::cell("gains", "layer", "dimension").coloured(by_column("gain"))}}};
  figure.grid.height = 220;
}

}  // namespace

Figure gamma_figure(Figure figure, const std::vector<LayerGains>& gains) {
  const GainHistory history = history_of(gains);
  if (history.moments.size() == 1) {
    add_by_layer(figure, gains);
  } else {
    const std::vector<std::int64_t> layers(history.layers.begin(), history.layers.end());
    for (const std::size_t place : evenly_spaced(layers.size(), most_panels)) {
      const std::string name = fmt::format("layer{}", layers[place]);
      figure.data.push_back({name, cells_of(history, layers[place])});
      figure.panels.push_back({.title = fmt::format("layer {}", layers[place]),
                               .x = moment_axis(history.moments, layers.size() == 1 ? 6 : 4),
                               .marks = {Mark::image(name, "moment", "dimension").coloured(by_column("gain"))}});
    }
  }
  for (Panel& panel : figure.panels) panel.y = {.kind = Axis::integers, .label = {"dimension"}, .reversed = true};
  figure.colours = {ColourScale::diverging, {.kind = Axis::around, .label = {"gain γ"}, .middle = 1, .least = 0.01}};
  figure.nothing = "no learned gain: the run has no QK-Norm";
  return figure;
}

}  // namespace headscope
