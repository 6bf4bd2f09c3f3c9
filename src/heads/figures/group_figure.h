// Metrics by group of layers: against tokens, or of one moment against layers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/missing.h"
#include "figures/figure.h"
#include "heads/figures/tracking_series.h"

namespace headscope {

struct GroupPanel {
  std::string_view metric;
  std::string label;       // of the y axis when the panel is alone, else above it
  bool growth = false;     // relative to the start; such panels share an axis
  bool quartiles = false;  // of heads, instead of a curve for each layer
  double reference = missing;
  std::string reference_name = {};
};

// A panel for each metric that was tracked, one below the other. `figure` has its names. Over tokens: the groups'
// means, with their layers or the quartiles of their heads. Of one moment: every head and the mean of its layer.
Figure group_figure(Figure figure, const RunTracks& tracks, const std::vector<GroupPanel>& panels);

// The colour of a group in every figure.
Colour depth_of(const GroupLayers& group);

// What an empty figure says.
constexpr const char* not_tracked = "not tracked in this run";

}  // namespace headscope
