// Results of made-up runs, without chance.
#pragma once

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>

#include "core/atomic_file.h"
#include "study/results.h"

namespace headscope::synthetic {

struct Run {
  std::string tag = "QK";
  double final_pr = 65;
  std::size_t layers = 3;
  std::size_t probes = 5;
};

// PR falls from 90 to its final value; layers lie one apart around the mean; losses begin with null.
inline ConditionResults results(const Run& run) {
  ConditionResults results;
  results.tag = run.tag;
  const bool has_gamma = run.tag != "NoQK";
  results.layer_pr.resize(run.layers);
  results.gamma_cv.resize(has_gamma ? run.layers : 0);
  for (std::size_t probe = 0; probe < run.probes; ++probe) {
    const auto at = static_cast<double>(probe);
    const double left = run.probes == 1 ? 0 : 1 - at / static_cast<double>(run.probes - 1);
    const double pr = run.final_pr + (90 - run.final_pr) * left;
    results.tokens.push_back(static_cast<std::int64_t>(probe) * 983040);
    results.loss.push_back(probe == 0 ? std::numeric_limits<double>::quiet_NaN() : 3 + 5 / (at + 1));
    results.val_loss.push_back(probe == 0 ? std::numeric_limits<double>::quiet_NaN() : 3.1 + 5 / (at + 1));
    results.mean_pr.push_back(pr);
    for (std::size_t layer = 0; layer < run.layers; ++layer)
      results.layer_pr[layer].push_back(pr + static_cast<double>(layer) - static_cast<double>(run.layers - 1) / 2);
    for (std::size_t layer = 0; layer < results.gamma_cv.size(); ++layer)
      results.gamma_cv[layer].push_back(run.tag == "QK" ? 0.01 * at * static_cast<double>(layer + 1) : 0);
  }
  Numbers gain(128, 1);  // d_k: no PR is larger
  gain[1] = 0.5;
  gain[2] = 1e-5;
  if (run.tag == "QK") results.gamma_final = std::vector<Numbers>(run.layers, gain);
  return results;
}

inline void write(const ConditionResults& results, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder / results.tag);
  write_file(folder / results.tag / results_name, results_text(results));
}

// A whole study of one seed with these final values.
inline void write_seed(const std::filesystem::path& folder, double a, double b, double c) {
  write(results({"QK", a}), folder);
  write(results({"QK_frozen", b}), folder);
  write(results({"NoQK", c}), folder);
}

}  // namespace headscope::synthetic
