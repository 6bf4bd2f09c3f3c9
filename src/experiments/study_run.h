// `headscope study`: one setup, trained in several conditions from several seeds, and what that shows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/setup.h"
#include "study/analyze.h"

namespace headscope {

// The keys that differ between the conditions: they are not for a study to set.
constexpr bool varies_between_conditions(std::string_view key) {
  return key == "model.qk_norm" || key == "train.qk_gain";
}

struct StudyOptions : Setup {
  std::string seeds = "42";  // as in the source study
  std::string conditions = fmt::format("{}", fmt::join(condition_tags, ","));
  double tau = default_tau;                                // smaller differences of the mean key PR count as none
  TrackOptions track{.every = 0, .metrics = "k_pr,gain"};  // what the verdict needs

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    Setup::fields(self, [&](const char* name, auto& value, const char* meaning) {
      if (!varies_between_conditions(name)) visit(name, value, meaning);
    });
    visit("study.seeds", self.seeds, "Seeds of weights and order of the data, comma-separated");
    visit("study.conditions", self.conditions, "Conditions to train, comma-separated");
    visit("study.tau", self.tau, "Smaller differences of the mean key PR count as none");
    TrackOptions::fields(self.track, visit);
  }
};

// Throws Error(Fault::input) naming the key on values that make no sense.
void validate(const StudyOptions& options);

std::vector<std::uint64_t> seeds_of(const StudyOptions& options);

// Indices into study_conditions, ascending.
std::vector<std::size_t> conditions_of(const StudyOptions& options);

// Trainings in all: one for each condition of each seed.
std::int64_t count_trainings(const StudyOptions& options);

using StudyJob = TrainingJob<StudyOptions>;

struct StudyOutcome : AnalyzeOutcome {
  std::optional<double> unigram_entropy, true_entropy;  // of the embedded language, to judge losses by
  std::string device;
  double tokens_per_s = 0;  // in training; 0 when nothing was left to train
};

// Writes a run folder (docs/study.md). Throws Error; one that is interrupted or fails can be resumed.
StudyOutcome run_study(const StudyJob& job, Console& console);

}  // namespace headscope
