// How many seeds a study needs: for 80 % chance of `different` where the true difference is 2 tau, and of `equivalent`
// where it is 0.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "study/verdict.h"

namespace headscope {

// By the deviation that each effect with two pairs or more shows: {gamma: {deviation, family, seeds_for_different,
// seeds_for_equivalent}}. null: more than most_pairs.
nlohmann::ordered_json power_of(const Verdict& verdict);
std::string power_text(const Verdict& verdict);

// The same for deviations that one may have, with the chances of some numbers of seeds: to plan a study.
nlohmann::ordered_json power_table(double tau);
std::string power_table_text(double tau);

}  // namespace headscope
