// What a study shows: computed in memory, without files and messages; written beside that.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run/run_folder.h"
#include "study/runs.h"
#include "study/verdict.h"

namespace headscope {

struct StudyResult {
  std::int64_t tokens = 0;  // where conditions were compared: last_common_tokens()
  Verdict verdict;
  PerCondition<MeanInterval> val_loss;  // there, over seeds; NaN where a seed has none
  std::vector<std::string> warnings;    // what is missing or was left out
};

// Throws Error(Fault::input) when the runs have no probe at the same number of tokens. tau > 0.
StudyResult analyze(const Study& study, double tau);

// What the manifest of a study says.
constexpr const char* study_command = "study";
nlohmann::ordered_json study_definitions();

// Writes TAG/results.json. `place` is a folder of the run: that of a seed, or "" where there is one seed.
void write_results(const ConditionResults& results, const RunFolder& folder, const std::filesystem::path& place);

// Writes the results of all conditions.
void write_results(const Study& study, const RunFolder& folder);

// Writes combined.json: results, verdict and the time that they took. One seed: objects A, B, C. Several: a list
// `seeds` of such objects, each with the name of its folder.
void write_combined(const Study& study, const StudyResult& result, double seconds, const RunFolder& folder);

}  // namespace headscope
