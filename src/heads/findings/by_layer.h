// Every measurement layer by layer: what means over thirds of the layers hide.
#pragma once

#include "heads/findings/answer.h"

namespace headscope {

// The means over the heads of each layer, at the first and at the last moment.
struct LayerMeans {
  const Metric* metric = nullptr;
  std::vector<double> start, end;  // [layer]
};

struct ByLayer {
  Basis basis;
  std::int64_t layers = 0;
  std::vector<LayerMeans> means;  // of the metrics that the main source has, in the order of head_metrics()
};

ByLayer find_by_layer(const RunTracks& run);

// {source, start, end, layers: [{layer, METRIC: {start, end}}]}
nlohmann::ordered_json to_json(const ByLayer& found);

// A table for the norms, one for the outliers and so on; "start → end" where there is a course.
std::string tables_of(const ByLayer& found);

}  // namespace headscope
