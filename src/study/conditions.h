// The conditions of the causal QK-Norm study (seed 004), its controls, and what their differences show. No other file
// defines them: a control is one entry of each table in conditions.cpp.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "run/names.h"

namespace headscope {

struct Condition {
  std::string letter;                                        // in sentences and tables
  std::string tag;                                           // the name of its folder, and `tag` in results.json
  std::string name;                                          // in the legend of a figure
  std::vector<std::pair<std::string, std::string>> changes;  // to the setup of the study: key, value
  std::string isolates;                                      // what it is for
};

// The seed's three, A, B and C, then the controls.
const std::vector<Condition>& known_conditions();
constexpr std::size_t n_main_conditions = 3;
bool is_main(std::string_view tag);
// The letter of A, B and C, the tag of others: how combined.json names them.
std::string key_of(const std::string& tag);
// A letter of the known conditions, or the name of one of their contrasts: results have it for a key, so it is no tag.
bool is_taken(std::string_view name);
constexpr std::string_view learned_gain_tag = condition_tags[0];  // A

// The main conditions and those of the tags, in the order of the table. Others come last: as `own` has them, or with
// their tag for a name. A letter is given once: where an own one is that of another condition, the tag stands for it.
std::vector<Condition> conditions_with(const std::vector<std::string>& tags, const std::vector<Condition>& own = {});

// Two conditions that differ in one thing. Its effect is the value of the first less that of the second.
struct Contrast {
  std::string name;           // in combined.json
  std::string cause;          // the subject of a sentence
  std::string first, second;  // tags
  bool is_control = false;    // its test belongs to the family of the controls
};

// Those of the conditions: gamma, norm and total first. A condition that is not in the table is compared with A.
std::vector<Contrast> contrasts_of(const std::vector<Condition>& conditions);

}  // namespace headscope
