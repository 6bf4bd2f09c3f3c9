// A study as its figures and its verdict need it: means over seeds.
#pragma once

#include <array>
#include <vector>

#include "study/runs.h"
#include "study/study_figures.h"

namespace headscope {

// The mean PR of each seed at this number of tokens, for A, B and C; NaN where the file has null.
std::array<std::vector<double>, n_conditions> mean_pr_at(const Study& study, std::int64_t tokens);

// Curves at the probes that all seeds of a condition share; layers at `tokens`. Values that are not finite do not
// count.
StudyFigureData figure_data(const Study& study, std::int64_t tokens);

}  // namespace headscope
