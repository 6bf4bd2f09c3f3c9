// `headscope train`: one model with every head measured on the way, into a run folder with findings, roles and figures.
#pragma once

#include <optional>

#include "core/missing.h"
#include "heads/summary.h"
#include "launch/place.h"
#include "run/run_folder.h"
#include "settings/ranks_options.h"
#include "settings/setup.h"

namespace headscope {

constexpr const char* train_command = "train";

struct TrainRunOptions : Setup {
  std::uint64_t seed = 42;  // as in the source study
  TrackOptions track;
  RanksOptions ranks;  // their number is no part of a configuration: results do not depend on it, but for rounding

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    Setup::fields(self, visit);
    visit("train.seed", self.seed, "Seed of the weights and of the order of the data");
    TrackOptions::fields(self.track, visit);
    RanksOptions::fields(self.ranks, visit);
  }
};

// Throws Error(Fault::input) naming the key on values that make no sense.
inline void validate(const TrainRunOptions& options) {
  validate(static_cast<const Setup&>(options));
  validate(options.track);
  check_ranges(options.ranks);
}

// A run that trains, as a study does, too. Options is a Setup with more.
template <class Options>
struct TrainingJob {
  Options options;
  RunFolderOptions folder;
  std::string theme = "light";
  RankPlace place = {};            // which of several processes this is
  std::string worker_device = {};  // of one of several processes: "cuda:1"; the configuration says "cuda" for all
};

using TrainRunJob = TrainingJob<TrainRunOptions>;

// What a loss is judged by: {unigram, true}, null where it is not known.
inline nlohmann::ordered_json entropy_json(std::optional<double> unigram, std::optional<double> true_entropy) {
  return {{"unigram", json_value(unigram)}, {"true", json_value(true_entropy)}};
}

struct TrainRunOutcome {
  std::filesystem::path out;
  HeadSummary summary;
  double val_loss = 0;
  std::optional<double> unigram_entropy, true_entropy;
  std::string device;
  double tokens_per_s = 0, seconds = 0;
  int ranks = 1;
  double exchange_share = missing;  // see TrainResult
};

// Throws Error; a run that is interrupted or fails can be resumed. Of several ranks, the outcome is that of the first
// one, and an error without text is one that another rank throws with it.
TrainRunOutcome run_training(const TrainRunJob& job, Console& console);

}  // namespace headscope
