// Metrics against tokens by group of layers, a panel for each metric.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "figures/figure.h"
#include "figures/panels.h"
#include "heads/figures/tracking_series.h"

namespace headscope {

struct GroupPanel {
  std::string_view metric;
  std::string_view label;  // of the y axis when the panel is alone, else above it
  bool growth = false;     // relative to the start; such panels share an axis
  bool quartiles = false;  // of heads, instead of a curve for each layer
  ReferenceLine reference = {};
};

// Panels of metrics that were not tracked are left out.
Figure group_figure(const std::string& name, std::string_view what, std::string_view whose, const RunTracks& tracks,
                    const std::vector<GroupPanel>& panels);

// What an empty figure says.
constexpr std::string_view not_tracked = "not tracked in this run";

}  // namespace headscope
