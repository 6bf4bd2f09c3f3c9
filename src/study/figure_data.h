// What the figures of a study show: means over seeds.
#pragma once

#include "study/runs.h"
#include "study/study_figures.h"

namespace headscope {

// Curves at the probes that all seeds of a condition share; layers at `tokens`. Values that are not finite do not
// count.
StudyFigureData figure_data(const Study& study, std::int64_t tokens);

}  // namespace headscope
