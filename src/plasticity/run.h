// A whole analysis: every head of a dataset into one run folder. Heads are independent and spread over workers; a head
// that is finished is kept in a journal, so a run that was stopped at any moment goes on where it was.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/console.h"
#include "plasticity/head.h"
#include "plasticity/options.h"
#include "run/run_folder.h"

namespace headscope {

struct PlasticityJob {
  std::filesystem::path data;  // empty: dataset_local_root/model_dir of the options
  PlasticityOptions options;
  RunFolderOptions folder;
  std::string command_line;
  bool demo = false;       // make a dataset of known plasticity in the run folder and analyse it
  bool fail_fast = false;  // stop at the first head that cannot be analysed
  bool figures = true;
  std::string theme = "light";
  bool per_head_figures = false;
};

struct HeadFailure {
  HeadId id;
  std::string message;
};

struct PlasticityOutcome {
  std::filesystem::path out;
  std::vector<HeadResult> heads;      // in order of layer and query head
  std::vector<HeadFailure> failures;  // likewise
  bool already_complete = false;      // --resume of a finished run: nothing was done
  double seconds = 0;
  nlohmann::ordered_json stages;  // seconds by stage, summed over workers
};

// Throws Error: input (nothing was written), interrupted (state is saved), runtime.
PlasticityOutcome run_plasticity(const PlasticityJob& job, Console& console);

// Draws the figures of a run from its tables, into `out`/plots.
std::vector<std::filesystem::path> draw_run(const std::filesystem::path& run, const std::filesystem::path& out,
                                            const std::string& theme, bool per_head);

}  // namespace headscope
