// What a study found, as a terminal shows it.
#pragma once

#include <string>

#include "study/analyze.h"

namespace headscope {

// Tables of conditions and effects, the verdict and other readings of it; lines of at most 100 characters. The first
// line says so where one seed describes. Ends with a line break.
std::string verdict_text(const StudyResult& result);

}  // namespace headscope
