// What was measured of the heads of one layer at one moment, and when.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace headscope {

// Values of the layer's heads by the name of the measurement (heads/metrics.h).
using HeadValues = std::map<std::string_view, std::vector<double>>;

// QK-Norm's gains of every layer; empty without QK-Norm.
struct Gains {
  std::vector<std::vector<double>> q, k;  // [layer][d_k]
};

// The updates that the weights had had, and the tokens of those.
struct Moment {
  std::int64_t step = 0;
  std::int64_t tokens = 0;

  bool operator==(const Moment&) const = default;
};

// When and on what something was measured.
struct Measured {
  Moment moment;
  std::string_view source;  // "train" or "probe"
};

}  // namespace headscope
