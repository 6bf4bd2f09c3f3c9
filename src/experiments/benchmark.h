// How fast training steps are, on random tokens, and what tracking adds: see benchmarks/.
#pragma once

#include <cstdint>
#include <string>

#include "settings/setup.h"

namespace headscope {

struct TrainBenchmark {
  double tokens_per_s = 0;  // of the median step
  double peak_memory_mb = 0;
  double loss_first = 0, loss_last = 0;
  std::string device;
};

// `warmup` steps, then `steps` that are timed.
TrainBenchmark benchmark_training(const Setup& setup, std::int64_t warmup, std::int64_t steps);

// What tracking costs: rounds of ten steps without it, with it every ten steps and with it at every step, one after
// another, so that a noisy machine disturbs all three alike. Measuring, collecting rows and writing them counts.
struct TrackingCost {
  double every_10 = 0, every_1 = 0;  // share of time added: medians over rounds; 0.02 is 2 %
  double step_seconds = 0;           // without tracking
  std::string device;
};
inline constexpr std::int64_t tracking_steps_per_round = 30;
// Of all rounds, and one more to warm up.
constexpr std::int64_t tracking_steps(std::int64_t rounds) {
  return tracking_steps_per_round * (rounds + 1);
}
TrackingCost benchmark_tracking(const Setup& setup, const std::string& metrics, std::int64_t rounds);

}  // namespace headscope
