// Weights in files: tensors by name (safetensors), and a trained model with the setup that made it.
#pragma once

#include <filesystem>
#include <string>

#include "formats/safetensors.h"
#include "model/decoder.h"
#include "settings/setup.h"

namespace headscope {

// Writes the tensors in their order and returns the file's hash. From any device.
std::string save_tensors(const std::filesystem::path& file, const NamedTensors& tensors);

// Fills every parameter of the model from the file that `origin` names.
void load_weights(const Safetensors& weights, const Decoder& model, const std::string& origin);

// Copies what a file holds into `target`, converting its type. Throws Error(Fault::input) naming the file and the
// tensor when the shapes differ.
void load_tensor(const TensorView& view, const at::Tensor& target, const std::string& origin);

// A trained model: a checkpoint of ours.
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

// "first (tiny), step 150": the run that trained it, or the preset where its checkpoint lies elsewhere.
std::string title_of(const LoadedModel& saved);

}  // namespace headscope
