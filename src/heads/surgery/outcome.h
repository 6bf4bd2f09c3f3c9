// What surgery found: its tables and figures in the run folder.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/console.h"
#include "heads/surgery/options.h"
#include "run/run_folder.h"

namespace headscope {

inline constexpr const char* surgery_command = "surgery";

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

// Writes the tables and summary.json, and draws. Without gnuplot there is a warning instead of figures.
void write_outcome(const SurgeryOutcome& outcome, const RunFolder& folder, const std::string& theme, Console& console);

// The losses of a run that is complete. Throws Error(Fault::input) when its files are damaged.
SurgeryLosses read_losses_of_surgery(const std::filesystem::path& run);

// Draws the figures of a run again, into `out`/plots; returns every file written.
std::vector<std::filesystem::path> draw_surgery_run(const std::filesystem::path& run, const std::filesystem::path& out,
                                                    const std::string& theme);

}  // namespace headscope
