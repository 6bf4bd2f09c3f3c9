// The learning rate over training, as a factor of its full value.
#pragma once

#include <cstdint>

#include "settings/train_options.h"

namespace headscope {

// For step 0 … steps - 1. During warm-up (step + 1) / warmup_steps; the cosine falls from 1 after the warm-up to
// final_share at the last step.
double learning_rate_factor(const ScheduleOptions& options, std::int64_t step, std::int64_t steps);

}  // namespace headscope
