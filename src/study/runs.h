// A study in memory: the results of its conditions, for one seed or several. How it is read from folders.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "study/conditions.h"
#include "study/results.h"

namespace headscope {

// The runs of one seed, by tag: at least one.
struct SeedRuns {
  std::string name;  // "seed_42"; the folder's name where it is not called so
  std::map<std::string, ConditionResults> runs;

  [[nodiscard]] const ConditionResults* find(const std::string& tag) const;
};

struct Study {
  std::string title;                          // for the figures
  std::vector<SeedRuns> seeds;                // at least one; all runs have the same number of layers
  std::map<std::string, std::string> inputs;  // a file that was read to the XXH3 (128 bits, hex) of its bytes
  std::vector<Condition> own = {};            // what is known of conditions that are not in the table
  std::vector<std::string> warnings = {};     // folders that were left out, runs that cannot be compared
};

// Each folder holds TAG/results.json of one seed, or sub-folders seed_N that do. Folders seed_N of the same name that
// have no condition in common are one seed. What a run's manifest says of its own conditions is taken from there. The
// title is the name of the first folder. A folder that seems to be meant and cannot be taken gets a warning, and so do
// runs whose probes measured different text, and a manifest that cannot be read. Throws Error(Fault::input) naming the
// file or folder: nothing there, a damaged file, runs of different depth, a folder given twice.
Study load_study(const std::vector<std::filesystem::path>& folders);

// The numbers of tokens at which every run has a probe, but for those that diverged (unless all did): at the last of
// them, as a rule the end, conditions are compared. Throws Error(Fault::input) when there is none.
Integers common_tokens(const Study& study);
Integers common_tokens(const std::vector<const ConditionResults*>& runs);  // may be empty

// The last probe at this number of tokens; none when there is no such probe.
std::optional<std::size_t> probe_at(const ConditionResults& results, std::int64_t tokens);

// A, B, C and the other conditions that a seed has.
std::vector<Condition> conditions_of(const Study& study);

// The runs of one condition, in order of the seeds.
std::vector<const ConditionResults*> runs_of(const Study& study, const std::string& tag);

}  // namespace headscope
