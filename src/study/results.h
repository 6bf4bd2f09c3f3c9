// The results of one condition of a study: the probes of one training run, in memory and as results.json.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/table.h"

namespace headscope {

constexpr const char* results_name = "results.json";
// Some ten million values, more than any study has. A longer file is refused before it fills the memory.
constexpr std::size_t most_results_bytes = std::size_t{256} << 20;

// A measure beside the key PR, of rank or of the spread of the scores, over the course of a run.
struct MeasureSeries {
  Numbers mean;                 // over layers and heads
  std::vector<Numbers> layers;  // [layer][probe]
};

constexpr std::string_view main_measure = "mean_pr", score_std_name = "score_std";

// The series beside mean_pr that results.json may have, by their names there, which are those of heads/metrics.h.
struct FurtherSeries {
  std::string_view name;
  bool is_rank;                 // the verdict is given by it, too
  std::string_view definition;  // for the manifest; of ranks behind that of mean_pr
};
constexpr std::array<FurtherSeries, 6> further_series = {
    {{"k_pr_centred", true, "the same of the keys less their mean"},
     {"k_pr_rotated", true, "the same of the keys after RoPE"},
     {"k_pr_before_gain", true, "the same of the keys before QK-Norm's gain"},
     {"qk_pr", true,
      "mean over layers and query heads of (sum s)^2 / sum s^2, s the singular values of Q K^T before RoPE"},
     {"qk_pr_rotated", true, "the same after RoPE"},
     {score_std_name, false,
      "mean over layers and query heads of the standard deviation of a query's scaled scores over the keys of its "
      "sequence, after RoPE"}}};

// Series have one value for each probe; NaN is null in the file (there is no loss before the first step).
struct ConditionResults {
  std::string tag;  // see is_condition_tag
  Integers tokens;  // seen at each probe; never decreases
  Numbers loss;     // training cross-entropy since the last probe, nats
  Numbers val_loss;
  Numbers mean_pr;                                  // key participation ratio, mean over layers
  std::vector<Numbers> layer_pr;                    // [layer][probe]
  std::vector<Numbers> gamma_cv;                    // [layer][probe]; empty without QK-Norm
  std::optional<std::vector<Numbers>> gamma_final;  // [layer][d_k]; where the gain is learned
  std::optional<Integers> updates;                  // made at each probe; absent in published results
  std::optional<double> adamw_lr;                   // where it is constant
  // By names of further_series; empty in published results.
  std::map<std::string, MeasureSeries> measures;
  // Also of mean_pr: the value for Gaussian queries and keys, the jackknife standard error over sequences at the last
  // probe, and that of each layer. Empty where not known.
  std::map<std::string, double> gaussian, jackknife_error;
  std::map<std::string, Numbers> layer_jackknife_error;
};

// The run diverged: its last probe has no PR, or lacks a loss that earlier ones have.
bool has_diverged(const ConditionResults& results);

// Tokens of the last probe that has a PR and every loss that earlier ones have; 0 where there is none.
std::int64_t last_sound_tokens(const ConditionResults& results);

// The text of results.json, byte for byte as Python's json.dump writes the same values: one line, numbers in shortest
// round-trip form. Reading it and writing it again gives the same bytes.
std::string results_text(const ConditionResults& results);

// The same values as an object of combined.json.
nlohmann::ordered_json results_json(const ConditionResults& results);

// Unknown fields are ignored. Throws Error(Fault::input), one line naming `origin` and the field, for anything that is
// not as described above, and for a PR that no keys have: hostile text is refused, however it is nested, repeated or
// long. The tag is `expected_tag` (the name of the file's folder) where that is given.
ConditionResults parse_results(std::string_view text, const std::string& origin, std::string_view expected_tag = {});

ConditionResults read_results(const std::filesystem::path& file, std::string_view expected_tag);

}  // namespace headscope
