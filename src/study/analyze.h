// Verdict and figures of a study from the results that are there, ours or published.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/console.h"
#include "run/run_folder.h"
#include "study/runs.h"
#include "study/verdict.h"

namespace headscope {

// What the manifest of such a run says.
constexpr const char* study_command = "study";

struct AnalyzeJob {
  std::vector<std::filesystem::path> folders;  // --analyze: see load_study
  double tau = default_tau;
  RunFolderOptions folder;
  std::string command_line;
  std::string theme = "light";
};

struct AnalyzeOutcome {
  std::filesystem::path out;
  Verdict verdict;
  std::int64_t tokens = 0;                                 // where conditions were compared
  std::array<std::vector<double>, n_conditions> val_loss;  // of each seed there
  double seconds = 0;
};

// The verdict of the results in `out`; warns about what is missing. `seconds` is left to the caller.
AnalyzeOutcome judge_study(const Study& study, const std::filesystem::path& out, double tau, Console& console);

// The figures, into the folder.
std::vector<std::filesystem::path> draw_study(const Study& study, const std::filesystem::path& folder,
                                              const std::string& theme);

void write_combined(const Study& study, const AnalyzeOutcome& outcome, const RunFolder& folder);

// What the numbers are, for the manifest.
nlohmann::ordered_json study_definitions();

// Writes a run folder: combined.json, [seed_N/]TAG/results.json, and the figures. Throws Error.
AnalyzeOutcome analyze_study(const AnalyzeJob& job, Console& console);

// Draws the figures of such a run again, from the results that it holds, into `out`.
std::vector<std::filesystem::path> draw_study_run(const std::filesystem::path& run, const std::filesystem::path& out,
                                                  const std::string& theme);

}  // namespace headscope
