// The formulas of the metrics, as docs/measurements.md has them: the file becomes a part of the program.
#pragma once

#include <string>
#include <string_view>

namespace headscope {

std::string_view measurements_text();

// The cell `formula` of the metric's row; empty where there is none.
std::string formula_of(std::string_view metric);

}  // namespace headscope
