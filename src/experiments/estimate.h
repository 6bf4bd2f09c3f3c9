// What training a model will take, before it is done.
#pragma once

#include <optional>
#include <string>

#include "settings/setup.h"

namespace headscope {

struct ComputeDevice;

// Of one run.
struct TrainEstimate {
  ParameterCounts parameters;
  std::int64_t tokens = 0;
  std::int64_t steps = 0;  // updates
  std::int64_t probes = 0;
  double memory_mb = 0;                 // at the peak of a step
  std::optional<double> gpu_memory_mb;  // all that the GPU has; nothing on a CPU
  double seconds = 0;
  std::string device;  // that it is for
  std::int64_t threads = 0;
};

// The time follows from the arithmetic of the model and a matrix product that is timed here and now (a fraction of a
// second on a model of the tiny preset's size, a few seconds at most).
TrainEstimate estimate_training(const Setup& setup, const ComputeDevice& device);

// On the device that the setup names. Throws Error(Fault::input) where that is not to be had, or when the start of the
// data shows that it does not fit.
TrainEstimate estimate_run(const Setup& setup);

// Refuses a model whose weights, gradients and optimizer alone need more memory than the machine has. A GPU says so
// itself.
void check_memory(const DecoderConfig& model, const ComputeDevice& device);

}  // namespace headscope
