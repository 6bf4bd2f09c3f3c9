#include "optim/schedule.h"

#include <cmath>
#include <numbers>

namespace headscope {

double learning_rate_factor(const ScheduleOptions& options, std::int64_t step, std::int64_t steps) {
  if (step < options.warmup_steps) return static_cast<double>(step + 1) / static_cast<double>(options.warmup_steps);
  if (options.kind == Schedule::constant) return 1;
  const auto left = static_cast<double>(std::max<std::int64_t>(1, steps - 1 - options.warmup_steps));
  const double done = std::min(1.0, static_cast<double>(step - options.warmup_steps) / left);
  return options.final_share + (1 - options.final_share) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

}  // namespace headscope
