// What a measurement would give of a head that does nothing: uniform attention, or keys whose components are
// independent and Gaussian. A value means something as far as it differs from that.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace headscope {

// What the measured batch was like.
struct BatchShape {
  std::int64_t seq_len = 0;  // 0: not known
  std::int64_t d_k = 0;      // likewise
  std::int64_t tokens = 0;   // keys of a head that were measured together; 0: many more than dimensions
  bool windows = false;      // queries see the last keys only, how many depends on the layer; seq_len is 0 then

  auto operator<=>(const BatchShape&) const = default;
};

struct Baseline {
  double value = 0;
  std::array<std::string_view, 2> of;  // "uniform attention" or "Gaussian keys": two words
};

// Nothing for a measurement that has none (norms), or when the shape that it depends on is not known.
std::optional<Baseline> baseline_of(std::string_view metric, const BatchShape& shape);

// The same for many runs: what is equal for all of them, such as the mean of draws, is computed once.
class Baselines {
 public:
  std::optional<Baseline> of(std::string_view metric, const BatchShape& shape);

 private:
  std::map<std::pair<std::string, BatchShape>, std::optional<Baseline>> known_;
};

}  // namespace headscope
