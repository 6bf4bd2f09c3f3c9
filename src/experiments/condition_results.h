// The results of a condition of a study, out of what its training measured.
#pragma once

#include <string>

#include "heads/baseline.h"
#include "study/results.h"
#include "train/loop.h"

namespace headscope {

ConditionResults results_of(const TrainResult& trained, const TrainJob& job, const std::string& tag,
                            Baselines& baselines);

// A last probe without values: where the run diverged.
void add_divergence(ConditionResults& results, const Moment& moment);

}  // namespace headscope
