// State from which a run goes on bit for bit: checkpoints/step-000120/{model,optimizer}.safetensors and state.json,
// which holds their hashes and its own.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "train/setup.h"
#include "train/tables.h"
#include "train/trainer.h"

namespace headscope {

// What a checkpoint holds beside tensors.
struct CheckpointState {
  std::int64_t step = 0;
  std::int64_t position = 0;  // in the data; it follows from the step
  double loss_sum = 0;        // since the last probe
  std::int64_t loss_count = 0;
  TableRows rows;
  std::string data_hash;          // of the corpus: a run goes on with the same data or not at all
  nlohmann::ordered_json config;  // of the run
};

// Writes the folder under another name first; it appears whole or not at all. Removes all but the newest `keep`. Throws
// Error(Fault::runtime) when that fails; earlier checkpoints are then as they were.
void save_checkpoint(const std::filesystem::path& checkpoints, const Trainer& trainer, const CheckpointState& state,
                     std::int64_t keep);

// The newest one; none when there is none. Removes what a killed process left half-written.
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& checkpoints);

// Puts the state into the trainer. Throws Error(Fault::input) naming the file when it is damaged or of another model;
// the trainer must not be used then.
CheckpointState load_checkpoint(const std::filesystem::path& checkpoint, Trainer& trainer);

// A checkpoint to be looked at: the model as it was, and what it was trained with.
struct SavedModel {
  std::filesystem::path checkpoint;
  Decoder model;  // float32, without gradients
  Setup setup;
  std::int64_t step = 0;
  std::int64_t tokens = 0;
  std::string data_hash;  // of the corpus that it was trained on
};

// `place`: the folder of a checkpoint, or of a run, which stands for its newest one. Throws Error(Fault::input) naming
// the file: there is none (of a study's folder: with the names of its conditions), it is damaged, or its tensors have
// other shapes than its configuration says.
SavedModel open_checkpoint(const std::filesystem::path& place, at::Device device);

}  // namespace headscope
