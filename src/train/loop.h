// Training one model to the end: steps, probes on the way, checkpoints. Rows go to the tables as they come.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/missing.h"
#include "heads/run_tables.h"
#include "train/trainer.h"

namespace headscope {

struct TrainJob {
  std::filesystem::path folder;  // holds the tables and checkpoints/
  std::string label;             // in front of errors
  std::string resume_hint;       // said when the run stops: "go on with …"
  DecoderConfig model;
  TrainOptions options;
  TrackOptions track;
  std::uint64_t seed = 42;
  nlohmann::ordered_json config;                 // resolved, for the checkpoints
  std::size_t keep_moments = most_kept_moments;  // of each source, in the result
  bool diverges_to_result = false;               // a run that diverges returns what it measured; otherwise an error
  bool with_rank_errors = false;                 // the result has them, if other_rank is measured
  const Ranks* ranks = &Ranks::one();            // all of them train; the first one writes
};

// What a caller hears of.
struct TrainObserver {
  std::function<void(std::int64_t steps_done, double loss)> progress = [](auto, auto) {};  // the first loss is missing
  std::function<void(std::string_view)> warning = [](auto) {};
  std::function<void(std::string_view)> resumed = [](auto) {};  // from where it goes on
  std::function<void()> saving = [] {};                         // a stop was asked for; the state is saved
  std::function<void()> before_writing = [] {};  // throws when nothing may be written to the folder any more
};

// Training stopped before an update whose loss or gradient was not finite.
struct Divergence {
  Moment moment;
  std::string found;  // see NotFinite
};

struct TrainResult {
  RunTracks tracks;
  std::vector<ProbeLosses> losses;
  double tokens_per_s = 0;          // of the steps of this process, without probes and checkpoints; 0: there were none
  double exchange_share = missing;  // of that time, what ranks took to exchange, waiting for each other included
  std::optional<Divergence> divergence = {};
  std::optional<RankErrors> rank_errors = {};  // at the end; empty: not asked for, or it diverged
};

// Goes on from the newest checkpoint in the folder, or starts. Stops with Error: Fault::interrupted after SIGINT or
// SIGTERM, and Fault::runtime when a loss or gradient is not finite (unless diverges_to_result); both leave a
// checkpoint. Of several ranks, the result is that of the first one; others get an empty one.
TrainResult train(const TrainJob& job, const Corpus& corpus, const ComputeDevice& device,
                  const TrainObserver& observer = {});

}  // namespace headscope
