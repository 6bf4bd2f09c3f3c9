// Opening a trained model: a checkpoint of ours.
#pragma once

#include <filesystem>

#include "model/decoder.h"
#include "settings/setup.h"

namespace headscope {

struct LoadedModel {
  std::filesystem::path checkpoint;
  Decoder model;                      // float32, without gradients
  Setup setup;                        // what it was trained with
  std::int64_t step = 0, tokens = 0;  // updates that it had, and the tokens of those
};

// `place`: the folder of a checkpoint, or of a run, which stands for its newest one. Throws Error(Fault::input) naming
// the file: there is none (of a study's folder: with the names of its conditions), it is damaged, or its tensors have
// other shapes than its configuration says.
LoadedModel load_model(const std::filesystem::path& place, at::Device device);

}  // namespace headscope
