// Training one model to the end, in a folder: steps, probes, tables, checkpoints.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/console.h"
#include "train/trainer.h"

namespace headscope {

struct TrainJob {
  std::filesystem::path folder;  // holds the tables and checkpoints/
  std::string label;             // in front of the progress
  std::string resume_hint;       // said when the run stops: "go on with …"
  DecoderConfig model;
  TrainOptions options;
  TrackOptions track;
  std::uint64_t seed = 42;
  nlohmann::ordered_json config;                 // resolved, for the checkpoints
  std::function<void()> before_writing = [] {};  // throws when nothing may be written to the folder any more
};

struct TrainOutcome {
  double tokens_per_s = 0;  // of the steps of this process, without probes and checkpoints; 0: there were none
};

// Goes on from the newest checkpoint in the folder, or starts. Stops with Error: Fault::interrupted after SIGINT or
// SIGTERM, and Fault::runtime when a loss or gradient is not finite; both leave a checkpoint.
TrainOutcome train(const TrainJob& job, const Corpus& corpus, const ComputeDevice& device, Console& console);

}  // namespace headscope
