// `headscope study --analyze`: verdict and figures of results that are there, ours or published. Drawing a study again.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "run/run_folder.h"
#include "study/analyze.h"

namespace headscope {

struct AnalyzeJob {
  std::vector<std::filesystem::path> folders;  // see load_study
  double tau = default_tau;
  RunFolderOptions folder;
  std::string command_line;
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
