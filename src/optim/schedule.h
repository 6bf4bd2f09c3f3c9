// The learning rate over training, as a factor of its full value.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/config.h"

namespace headscope {

enum class Schedule { constant, cosine };
template <>
struct EnumNames<Schedule> {
  static constexpr std::array<std::string_view, 2> names = {"constant", "cosine"};
};

struct ScheduleOptions {
  Schedule kind = Schedule::constant;
  std::int64_t warmup_steps = 0;  // the factor rises linearly to 1
  double final_share = 0.1;       // cosine ends here
};

// For step 0 … steps - 1. During warm-up (step + 1) / warmup_steps; the cosine falls from 1 after the warm-up to
// final_share at the last step.
double learning_rate_factor(const ScheduleOptions& options, std::int64_t step, std::int64_t steps);

}  // namespace headscope
