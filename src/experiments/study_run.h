// The causal QK-Norm study: trains the conditions of every seed and says what was found.
#pragma once

#include <optional>

#include "core/console.h"
#include "experiments/study_options.h"
#include "run/run_folder.h"
#include "study/analyze_run.h"

namespace headscope {

struct StudyJob {
  StudyOptions options;
  RunFolderOptions folder;
  std::string command_line;
  std::string theme = "light";
};

struct StudyOutcome : AnalyzeOutcome {
  std::optional<double> unigram_entropy, true_entropy;  // of the embedded language, to judge losses by
  std::string device;
  double tokens_per_s = 0;  // in training; 0 when nothing was left to train
};

// Writes a run folder (docs/study.md). Throws Error; one that is interrupted or fails can be resumed.
StudyOutcome run_study(const StudyJob& job, Console& console);

}  // namespace headscope
