// `headscope study`: one setup, trained in several conditions from several seeds, and what that shows.
#pragma once

#include <optional>
#include <string>

#include "experiments/train_run.h"
#include "study/analyze.h"
#include "study/study_options.h"

namespace headscope {

using StudyJob = TrainingJob<StudyOptions>;

struct StudyOutcome : AnalyzeOutcome {
  std::optional<double> unigram_entropy, true_entropy;  // to judge losses by; the second of the embedded language
  std::string device;
  double tokens_per_s = 0;  // in training; 0 when nothing was left to train
};

// Writes a run folder (docs/study.md). Throws Error; one that is interrupted or fails can be resumed.
StudyOutcome run_study(const StudyJob& job, Console& console);

}  // namespace headscope
