// The answers of summary.json for a page.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "page/report_data.h"

namespace headscope {

// Those that the object has, in the order of the questions. `counts` tells which query heads read a key head.
std::vector<Answer> answers_of(const nlohmann::ordered_json& summary, const HeadCounts& counts);

}  // namespace headscope
