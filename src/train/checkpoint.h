// State from which a run goes on bit for bit (model/checkpoint_files.h has the files).
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "heads/run_tables.h"
#include "train/trainer.h"

namespace headscope {

// What a checkpoint holds beside tensors.
struct CheckpointState {
  std::int64_t step = 0;
  double loss_sum = 0;  // since the last probe
  std::int64_t loss_count = 0;
  TableRows rows;
  std::string data_hash;          // of the corpus: a run goes on with the same data or not at all
  nlohmann::ordered_json config;  // of the run
};

// Writes the folder under another name first; it appears whole or not at all. Removes all but the newest `keep`. Throws
// Error(Fault::runtime) when that fails; earlier checkpoints are then as they were. Of several ranks, all call it and
// the first one writes, once the weights of all are found to be the same. before_writing throws when this process may
// write no more; it is asked before the first file and before the folder gets its name.
void save_checkpoint(
    const std::filesystem::path& checkpoints, const Trainer& trainer, const CheckpointState& state, std::int64_t keep,
    const std::function<void()>& before_writing = [] {});

// The newest one; none when there is none.
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& checkpoints);

// Puts the state into the trainer. Throws Error(Fault::input) naming the file when it is damaged or of another model;
// the trainer must not be used then.
CheckpointState load_checkpoint(const std::filesystem::path& checkpoint, Trainer& trainer);

}  // namespace headscope
