// The commands `plasticity` and `plasticity compare`: open a run folder, compute, write, draw. And their figures again,
// from the tables of a run.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/console.h"
#include "plasticity/compare.h"
#include "plasticity/demo.h"
#include "run/run_folder.h"

namespace headscope {

constexpr const char* plasticity_command = "plasticity";
constexpr const char* compare_command = "plasticity compare";
constexpr const char* own_data_name = "data";   // the folder of the data that a run makes, of --demo or of a model
constexpr const char* capture_key = "capture";  // of the configuration: how a model was captured
// In the manifest: whether the numbers of layers and heads were given, or found in the data.
constexpr const char* heads_from = "heads_from";
constexpr const char* heads_from_configuration = "configuration";

// Captures queries and keys of a model first, into the run folder: what is known of the model before, and the work.
struct CaptureFirst {
  std::string title;  // of the model
  std::int64_t layers = 0, q_heads = 0, k_heads = 0;
  std::string rope;
  nlohmann::ordered_json config;
  std::function<void(const std::filesystem::path& folder, const std::string& hint)> capture;
};

struct PlasticityJob {
  std::filesystem::path data;         // empty: dataset_local_root/model_dir of the options
  std::optional<CaptureFirst> model;  // captured first, instead of `data`
  PlasticityOptions options;
  RunFolderOptions folder;
  bool demo = false;       // make a dataset of known plasticity in the run folder and analyse it
  bool fail_fast = false;  // stop at the first head that cannot be analysed
  bool figures = true;
  std::string theme = "light";
  bool per_head_figures = false;
};

struct PlasticityOutcome {
  std::filesystem::path out;
  PlasticityResult result;    // empty when the run was complete before
  std::string rope;           // where queries and keys were captured: before, after, unknown
  std::vector<DemoRow> demo;  // of --demo
  bool has_figures = false;
  bool already_complete = false;  // --resume of a finished run: nothing was done
  double seconds = 0;
};

// A head that is finished goes to a journal in the run folder at once: a run that was stopped at any moment continues
// there. Throws Error: input (nothing was written), interrupted (state is saved), runtime.
PlasticityOutcome run_plasticity(const PlasticityJob& job, Console& console);

// One line about the heads that could not be analysed, and what to do; there must be one.
std::string failures_text(const PlasticityOutcome& outcome);

// Parts of the manifest that --json prints, too.
nlohmann::ordered_json failures_json(const PlasticityResult& result);
nlohmann::ordered_json stages_json(const PlasticityResult& result);

struct CompareJob {
  std::filesystem::path run_1, run_2;
  RunFolderOptions folder;
  std::string theme = "light";
};

struct CompareOutcome {
  std::filesystem::path out;
  std::vector<std::string> differ;  // settings that make the runs measure something else
  Comparison comparison;
};

// Computes, and writes a run folder unless it is complete. Throws Error.
CompareOutcome run_comparison(const CompareJob& job);

// Each draws the figures of such a run from its tables, into `out`/plots, and returns every file written.
std::vector<std::filesystem::path> draw_plasticity_run(const std::filesystem::path& run,
                                                       const std::filesystem::path& out, const std::string& theme,
                                                       bool per_head);
std::vector<std::filesystem::path> draw_comparison_run(const std::filesystem::path& run,
                                                       const std::filesystem::path& out, const std::string& theme);

}  // namespace headscope
