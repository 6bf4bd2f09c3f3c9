// Metrics of one moment: every head and the mean of its layer, by layer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "figures/figure.h"
#include "figures/panels.h"
#include "heads/figures/tracking_series.h"

namespace headscope {

struct SnapshotPanel {
  TrackedMetrics shown;  // its last moment is drawn
  std::string_view metric;
  std::string_view label;
  ReferenceLine reference = {};
};

// Stacked panels over layers, coloured by group.
Figure snapshot_figure(const std::string& name, std::string_view what, std::string_view whose,
                       const std::vector<SnapshotPanel>& snapshots);

}  // namespace headscope
