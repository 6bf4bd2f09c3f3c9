// Conditions that the user of a study defines, in YAML (docs/study.md):
//   half_decay:                          the tag
//     letter: H                          in sentences and tables; otherwise the tag
//     name: H half of the decay          in legends; otherwise letter and tag
//     changes: {optim.gain_decay: 0.1}   to the setup of the study
//     isolates: the dose of decay        what it is for
#pragma once

#include <string>
#include <vector>

#include "core/config.h"
#include "study/conditions.h"

namespace headscope {

// In order of appearance. Throws Error(Fault::input) naming the line: a tag that is no name of a folder, or taken
// already, a letter that is taken, an unknown key, nothing that is changed.
std::vector<Condition> parse_conditions(const std::string& text, const std::string& origin);

// The same on one line, which parse_conditions reads; JSON. Empty without conditions.
std::string text_of(const std::vector<Condition>& conditions);

// Files (.yaml, .yml) that study.conditions names become the tags of their conditions, and letters become tags. These
// conditions, those that a configuration has below study.own_conditions, and its text are put together in one entry
// study.own_conditions. What comes later goes over what was there before, but for the files, which go over all.
std::vector<ConfigEntry> with_own_conditions(const std::vector<ConfigEntry>& entries);

// The entries with a last one that adds the controls to the conditions that are chosen.
std::vector<ConfigEntry> with_controls(std::vector<ConfigEntry> entries);

}  // namespace headscope
