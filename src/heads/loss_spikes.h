// Spikes of the training loss. A loss is a spike when it lies above the median m of the 100 losses before it
//   by more than 6 · 1.4826 · MAD, and by more than 1 % of m,
// MAD the median of |loss - m| of these 100; 1.4826 · MAD is the standard deviation of normal noise. Medians stay where
// they are when an earlier spike is among the 100, and a loss that falls quickly makes none. The second condition
// keeps losses apart from spikes that hardly vary. The first 100 updates of a training have no rule, and one spike is
// reported for 100 steps: what follows it is the same spike.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace headscope {

struct LossSpike {
  double median = 0;      // of the losses before
  double deviations = 0;  // how far above it, in 1.4826 · MAD; infinite where MAD is 0
};

class LossSpikes {
 public:
  static constexpr std::size_t window = 100;

  // `before`: the losses of earlier updates, in order; `last`: the step of the last spike among them.
  explicit LossSpikes(std::span<const double> before = {}, std::optional<std::int64_t> last = {});

  // The loss of the next update.
  std::optional<LossSpike> add(std::int64_t step, double loss);

 private:
  std::vector<double> losses_;  // the last ones, at most `window`: a ring when it is full
  std::size_t next_ = 0;        // the oldest of a full ring
  std::optional<std::int64_t> last_;
};

}  // namespace headscope
