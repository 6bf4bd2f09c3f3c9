// The answers of summary.json for a page.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "page/report_data.h"

namespace headscope {

// Those that the object has, in the order of the questions. `counts` tells which query heads read a key head.
std::vector<Answer> answers_of(const nlohmann::ordered_json& summary, const HeadCounts& counts);
// The keys of questions that are there without an answer that can be shown.
std::vector<std::string> damaged_answers(const nlohmann::ordered_json& summary);

}  // namespace headscope
