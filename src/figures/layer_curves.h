// One thin curve for each layer, coloured by layer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "figures/script.h"
#include "formats/table.h"

namespace headscope {

struct CurvePoint {
  std::int64_t layer = 0;
  std::int64_t x = 0;
  double y = 0;
};

struct LayerCurves {
  Table table;      // a column of x, then a column for each layer: L0, L1, ...
  Script commands;  // names the layers, in order of the columns
  Script clause;    // plots them from the data block `layers`, coloured by the palette
  std::int64_t first = 0, last = 0;
};

// Points in order of layer; a layer without a point at some x has a missing value there.
LayerCurves layer_curves(const std::vector<CurvePoint>& points, std::string_view x_name);

}  // namespace headscope
