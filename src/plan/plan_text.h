// What a plan rests on, and what its numbers do not say by themselves, as sentences.
#pragma once

#include "plan/plan.h"

namespace headscope {

std::vector<Assumption> assumptions_of(const Setup& setup, const ScalePlan& plan, bool ordered);

// How the plan differs from the configuration, and what to keep in mind.
std::vector<std::string> notes_of(const ScalePlan& plan, const Setup& setup);

// What makes so many ranks of little use, or the run impossible.
std::vector<std::string> warnings_of(const ScalePlan& plan, const Setup& setup);

// 1.23 M, 456 k, 789
std::string short_count(double count);

}  // namespace headscope
