// Tensors in safetensors files.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <string>

#include "formats/safetensors.h"
#include "model/decoder.h"

namespace headscope {

// Writes the tensors in their order and returns the file's hash. From any device.
std::string save_tensors(const std::filesystem::path& file, const NamedTensors& tensors);

// Fills every parameter of the model from the file that `origin` names.
void load_weights(const Safetensors& weights, const Decoder& model, const std::string& origin);

// Copies what a file holds into `target`, converting its type. Throws Error(Fault::input) naming the file and the
// tensor when the shapes differ.
void load_tensor(const TensorView& view, const at::Tensor& target, const std::string& origin);

}  // namespace headscope
