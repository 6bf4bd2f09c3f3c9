// What a study will take, before it is run.
#pragma once

#include "model/decoder_config.h"
#include "ops/device.h"
#include "study/options.h"

namespace headscope {

struct StudyEstimate {
  ParameterCounts parameters;
  std::int64_t runs = 0;    // conditions x seeds
  std::int64_t tokens = 0;  // of one run
  std::int64_t steps = 0;   // updates of one run
  std::int64_t probes = 0;  // of one run
  double memory_mb = 0;     // at the peak of a step
  double seconds = 0;       // of all runs
};

// The time follows from the arithmetic of the model and a matrix product that is timed here and now (a fraction of a
// second).
StudyEstimate estimate_study(const StudyOptions& options, const ComputeDevice& device);

}  // namespace headscope
