// Two plasticity runs, head by head: by how much they differ, and whether that is more than chance.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plasticity/dataset.h"
#include "run/run_folder.h"

namespace headscope {

constexpr const char* compare_command = "plasticity compare";

struct HeadDifference {
  HeadId id;
  double ap_1 = 0, ap_2 = 0;
  double difference = 0;  // ap_2 - ap_1
  double standard_error = 0, low = 0, high = 0, p_value = 1;
  bool paired = false;       // both runs saw the same examples: the error is of the differences of their replicates
  bool significant = false;  // false discovery rate of 5 % over all heads (Benjamini and Hochberg 1995)
};

struct CompareJob {
  std::filesystem::path run_1, run_2;
  RunFolderOptions folder;
  std::string command_line;
  std::string theme = "light";
};

struct CompareOutcome {
  std::filesystem::path out;
  std::vector<HeadDifference> heads;  // those that both runs have
  std::size_t only_in_one = 0;
};

// Computes, and writes a run folder unless it is complete. Throws Error.
CompareOutcome compare_runs(const CompareJob& job);

// Draws the figures of such a run again, into `out`/plots.
std::vector<std::filesystem::path> draw_comparison_run(const std::filesystem::path& run,
                                                       const std::filesystem::path& out, const std::string& theme);

// Marks as significant what a false discovery rate of `rate` allows.
void control_false_discoveries(std::vector<HeadDifference>& heads, double rate);

}  // namespace headscope
