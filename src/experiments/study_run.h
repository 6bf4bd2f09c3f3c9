// `headscope study`: one setup, trained in several conditions from several seeds, and what that shows.
#pragma once

#include <vector>

#include "experiments/train_run.h"
#include "study/analyze.h"
#include "study/run_board.h"
#include "study/study_options.h"

namespace headscope {

using StudyJob = TrainingJob<StudyOptions>;

// Trains the runs that no other process has claimed, until all have results; the last process concludes. Writes a run
// folder (docs/study.md). Throws Error; a study that is interrupted or fails can be resumed.
StudyOutcome run_study(const StudyJob& job, Console& console, RunBoard& board);

// The GPUs that workers can use: those that are wanted, all of them where none is. Throws Error(Fault::input).
std::vector<int> gpus_for_workers(const std::vector<int>& wanted);

}  // namespace headscope
