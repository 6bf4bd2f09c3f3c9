// How fast training steps are, on random tokens: benchmarks/training compares it with other programs.
#pragma once

#include <cstdint>

#include "model/decoder_config.h"
#include "ops/device.h"
#include "train/options.h"

namespace headscope {

struct TrainBenchmark {
  double tokens_per_s = 0;  // of the median step
  double peak_memory_mb = 0;
  double loss_first = 0, loss_last = 0;
};

// `warmup` steps, then `steps` that are timed.
TrainBenchmark benchmark_training(const DecoderConfig& model, const TrainOptions& options, std::int64_t warmup,
                                  std::int64_t steps, const ComputeDevice& device);

}  // namespace headscope
