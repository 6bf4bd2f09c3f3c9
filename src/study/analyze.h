// What a study shows: computed in memory, written beside that. `headscope study --analyze`: verdict and figures of
// results that are there, ours or published.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "run/run_folder.h"
#include "study/runs.h"
#include "study/verdict.h"

namespace headscope {

// The verdict at one probe. That of the last one is the test; the others explore.
struct Reading {
  std::int64_t tokens = 0;
  std::optional<std::int64_t> updates;  // where all runs made as many
  std::optional<double> adamw_lr;       // where all runs had the same
  Verdict verdict;

  [[nodiscard]] std::optional<double> updates_x_adamw_lr() const {
    return updates && adamw_lr ? std::optional(static_cast<double>(*updates) * *adamw_lr) : std::nullopt;
  }
};

// More about an effect of the verdict.
struct EffectDetails {
  // Over seeds, of the PR at the same validation loss: the last one of the two that ends higher.
  MeanInterval at_equal_loss;
  std::vector<MeanInterval> layers;  // difference of each layer's PR at the end

  [[nodiscard]] double mean_size() const;   // mean over layers of |difference|
  [[nodiscard]] double noise_size() const;  // what it would be without any effect; NaN with one seed
};

// The verdict at the end by another measure of rank than mean_pr.
struct MeasureVerdict {
  std::string name;                // a rank of further_series
  double start = 0;                // mean over the runs, at the first probe
  Verdict verdict;                 // its tau is that of mean_pr times the starts of the two: start / start of mean_pr
  std::optional<bool> holds = {};  // the conclusion is that of mean_pr; none where that is inconclusive
};

// A run whose values are not finite from some probe on: it is left out of all pairs.
struct DivergedRun {
  std::string seed, tag;
  std::int64_t tokens = 0;  // the last probe that was sound
};

struct StudyResult {
  std::int64_t tokens = 0;  // where conditions were compared: the last of common_tokens()
  Verdict verdict;
  std::vector<EffectDetails> details;  // of each effect of the verdict
  std::vector<Reading> over_time;
  std::int64_t held_since = 0;           // tokens from which on the conclusion is that of the end
  std::optional<Verdict> last_probes;    // of the mean of the last `probes_of_second_reading`, where there are so many
  std::vector<MeanInterval> val_loss;    // of each condition, there, over seeds; NaN where a seed has none
  std::vector<MeasureVerdict> measures;  // those that all runs have which did not diverge
  std::vector<DivergedRun> diverged;
  std::vector<std::string> warnings;  // what is missing or was left out
};
constexpr std::size_t probes_of_second_reading = 5;

// Throws Error(Fault::input) naming the flag.
void check_tau(double tau);

// Throws Error(Fault::input) when the runs have no probe at the same number of tokens. tau > 0.
StudyResult analyze(const Study& study, double tau);

// The verdict as combined.json has it (docs/study.md).
nlohmann::ordered_json verdict_json(const StudyResult& result);

// How the losses of the conditions compare with the entropies of the language that they were trained on, as far as the
// printed numbers tell: "the validation losses lie between the language's true entropy, 0.587 nats, and …".
std::string losses_text(const std::vector<MeanInterval>& val_loss, double unigram_entropy,
                        std::optional<double> true_entropy);

// What the manifest of a study says.
constexpr const char* study_command = "study";
nlohmann::ordered_json study_definitions();

// Writes TAG/results.json. `place` is a folder of the run: that of a seed, or "" where there is one seed.
void write_results(const ConditionResults& results, const RunFolder& folder, const std::filesystem::path& place);

// Writes the results of all conditions.
void write_results(const Study& study, const RunFolder& folder);

// Writes combined.json: results, verdict and the time that they took. One seed: objects A, B, C, and others by tag in
// `conditions`. Several: a list `seeds` of such objects, each with the name of its folder.
void write_combined(const Study& study, const StudyResult& result, double seconds, const RunFolder& folder);

struct AnalyzeJob {
  std::vector<std::filesystem::path> folders;  // see load_study
  double tau = default_tau;
  RunFolderOptions folder;
  std::string theme = "light";
};

struct AnalyzeOutcome {
  std::filesystem::path out;
  StudyResult result;
  double seconds = 0;  // 0: the run was complete before
};

// Of a study that trains.
struct StudyOutcome : AnalyzeOutcome {
  std::optional<double> unigram_entropy, true_entropy;  // to judge losses by; the second of the embedded language
  std::string device;
  double tokens_per_s = 0;  // in training; 0 when nothing was left to train
  bool concluded = false;   // this process wrote the verdict; otherwise it was there, or another process did
};

// Of a study that is complete, from its folder.
StudyOutcome read_outcome(const std::filesystem::path& run, double tau);

// Writes a run folder: combined.json, [seed_N/]TAG/results.json, and the figures. Throws Error.
AnalyzeOutcome run_analysis(const AnalyzeJob& job);

// Draws the figures of a study again, from the results that its run holds, into `out`.
std::vector<std::filesystem::path> draw_study_run(const std::filesystem::path& run, const std::filesystem::path& out,
                                                  const std::string& theme);

}  // namespace headscope
