// Opening a trained model: a checkpoint of ours.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "model/decoder.h"

namespace headscope {

struct LoadedModel {
  std::filesystem::path checkpoint;
  Decoder model;                  // float32, without gradients
  nlohmann::ordered_json config;  // of the run that trained it
  std::int64_t step = 0;          // updates that it had
  std::string data_hash;          // of the corpus that it was trained on
};

// `place`: the folder of a checkpoint, or of a run, which stands for its newest one. Throws Error(Fault::input) naming
// the file: there is none (of a study's folder: with the names of its conditions), it is damaged, or its tensors have
// other shapes than its configuration says.
LoadedModel load_model(const std::filesystem::path& place, at::Device device);

// The entries of a run's configuration, in the words of this version. `origin` names the file in errors.
std::vector<ConfigEntry> entries_of(const nlohmann::ordered_json& config, const std::string& origin);

}  // namespace headscope
