// The runs of a study: three conditions, for one seed or several.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "study/results.h"

namespace headscope {

// The runs of one seed, in the order A, B, C: those that are there, at least one.
struct SeedRuns {
  std::string name;  // "seed_42"; the folder's name where it is not called so
  std::array<std::optional<ConditionResults>, n_conditions> conditions;
};

struct Study {
  std::string title;                          // the name of the (first) folder
  std::vector<SeedRuns> seeds;                // at least one
  std::map<std::string, std::string> inputs;  // file to XXH3 (128 bits, hex) of its bytes
};

// Each folder holds TAG/results.json of one seed, or sub-folders seed_N that do. Throws Error(Fault::input) naming the
// file or folder: nothing there, a damaged file, runs of different depth, a folder given twice.
Study load_study(const std::vector<std::filesystem::path>& folders);

// The largest number of tokens at which every run has a probe: where conditions are compared. As a rule it is the end
// of all of them. Throws Error(Fault::input) when there is none.
std::int64_t last_common_tokens(const Study& study);

// The last probe at this number of tokens; none when there is no such probe.
std::optional<std::size_t> probe_at(const ConditionResults& results, std::int64_t tokens);

}  // namespace headscope
