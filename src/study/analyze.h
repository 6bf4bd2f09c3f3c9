// What a study shows: computed in memory, written beside that. `headscope study --analyze`: verdict and figures of
// results that are there, ours or published.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
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

// How the losses of the conditions compare with the entropies of the language that they were trained on, as far as the
// printed numbers tell: "the validation losses lie between the language's true entropy, 0.587 nats, and …".
std::string losses_text(const PerCondition<MeanInterval>& val_loss, double unigram_entropy,
                        std::optional<double> true_entropy);

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

struct AnalyzeJob {
  std::vector<std::filesystem::path> folders;  // see load_study
  double tau = default_tau;
  RunFolderOptions folder;
  std::string theme = "light";
};

struct AnalyzeOutcome {
  std::filesystem::path out;
  StudyResult result;
  double seconds = 0;  // 0: the run was complete before
};

// Writes a run folder: combined.json, [seed_N/]TAG/results.json, and the figures. Throws Error.
AnalyzeOutcome run_analysis(const AnalyzeJob& job);

// Draws the figures of a study again, from the results that its run holds, into `out`.
std::vector<std::filesystem::path> draw_study_run(const std::filesystem::path& run, const std::filesystem::path& out,
                                                  const std::string& theme);

}  // namespace headscope
