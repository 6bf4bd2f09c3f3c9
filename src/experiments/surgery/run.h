// `headscope surgery`: operations on the keys of a checkpoint, and what they cost, in a run folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/console.h"
#include "experiments/surgery/options.h"
#include "run/run_folder.h"

namespace headscope {

inline constexpr const char* surgery_command = "surgery";

struct SurgeryJob {
  SurgeryOptions options;
  RunFolderOptions folder;
  std::string theme = "light";
};

struct SurgeryOutcome {
  std::filesystem::path out;
  std::string title;  // "tiny QK, step 150"
  std::int64_t d_k = 0;
  std::vector<std::int64_t> layers;  // that were operated on
  RemovalOrder order = RemovalOrder::smallest;
  SurgeryLosses losses;
};

// summary.json, which --json prints, too.
nlohmann::ordered_json to_json(const SurgeryOutcome& outcome);

// Writes a run folder (docs/surgery.md). Throws Error; bad input leaves no folder.
SurgeryOutcome run_surgery(const SurgeryJob& job, Console& console);

// Draws the figures of a run again, into `out`/plots; returns every file written.
std::vector<std::filesystem::path> draw_surgery_run(const std::filesystem::path& run, const std::filesystem::path& out,
                                                    const std::string& theme);

}  // namespace headscope
