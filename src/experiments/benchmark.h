// How fast training steps are, on random tokens, and what tracking adds: see benchmarks/.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "heads/metrics.h"
#include "settings/setup.h"

namespace headscope {

struct TrainBenchmark {
  double step_ms_median = 0;  // over blocks of steps: the time of a block over its steps
  double tokens_per_s = 0;    // of that step
  double tflops = 0;          // of that step: training_flops_per_token() of each token, 1e12 a second
  double first_step_s = 0;    // from the start of the process to the end of its first update
  double peak_memory_mb = 0;  // MiB
  double loss_first = 0, loss_last = 0;
  std::string device;
  std::map<std::string, double> parts_ms;  // of an update whose parts are timed; empty: it was not asked for
};

// `warmup` steps, then `steps` that are timed in blocks, with a wait for the device before and after a block only:
// training does not wait after each step. A block has ten steps, or track.every if that is more. With track.every > 0,
// steps are measured as `train` does, and rows are written when `train` would write them. With `parts`, ten more steps
// follow whose parts are timed one by one, without a graph: their sum is somewhat more than a step.
TrainBenchmark benchmark_training(const Setup& setup, std::int64_t warmup, std::int64_t steps,
                                  const TrackOptions& track = {.every = 0}, bool parts = false);

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
