// What a plan rests on, and what its numbers do not say by themselves, as sentences.
#pragma once

#include "plan/plan.h"

namespace headscope {

std::vector<Assumption> assumptions_of(const Setup& setup, const ScalePlan& plan, bool ordered);

// What makes so many ranks of little use, or the run impossible.
std::vector<std::string> warnings_of(const ScalePlan& plan, const Setup& setup, bool ordered);

// How the plan differs from the configuration, what to do about it, and what the table cannot be read without.
std::vector<std::string> actions_of(const ScalePlan& plan, const Setup& setup);

// What to keep in mind of any plan.
std::vector<std::string> notes_of(const ScalePlan& plan);

// What lies between tokens_per_s_low and tokens_per_s_high.
std::string range_text(const ScalePlan& plan);

// Whether a row has no update, or does not fit the GPU.
bool has_no_update(const RankPlan& row);
bool does_not_fit(const ScalePlan& plan, const RankPlan& row);

// "1 update", "1,024 updates"
std::string counted(std::int64_t count, std::string_view noun);

// "0.0306 GPU-hours", and where that is less than 0.01, GPU-seconds
std::string gpu_time(double hours);

// 1.23 M, 456 k, 789
std::string short_count(double count);

}  // namespace headscope
