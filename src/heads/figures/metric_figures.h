// Any measurement as curves and as a map: `headscope plot RUN --metric NAME`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "figures/figure.h"
#include "heads/baseline.h"
#include "heads/tracks.h"

namespace headscope {

struct MetricFigureOptions {
  std::string metric;
  std::string source = {};                // probe or train; empty: probe where it has the metric
  std::vector<std::int64_t> layers = {};  // empty: all
  std::vector<std::string> heads = {};    // L1H2 or L1K0; empty: all
  std::string title = {};                 // the run's name
};

//   metric_NAME_curves   the metric of every chosen head against tokens; up to six heads have a name each
//   metric_NAME_map      layer x head at the last moment, of the chosen layers
// Throws Error(Fault::input): a metric that is unknown or was not measured, a head or a layer that is not there.
std::vector<Figure> metric_figures(const RunTracks& tracks, const BatchShape& shape,
                                   const MetricFigureOptions& options);

}  // namespace headscope
