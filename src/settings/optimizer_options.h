// Settings of the optimizers and of their learning rate.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/config.h"

namespace headscope {

struct MuonOptions {
  double momentum = 0.95;
};

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0.2;
};

struct OptimizerOptions {
  double muon_lr = 0.02;
  double adamw_lr = 0.005;
  MuonOptions muon;
  AdamWOptions adamw;
};

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

}  // namespace headscope
