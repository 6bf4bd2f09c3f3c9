// From stored tensors to the parameters of a decoder, by the table of an architecture.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tensor.h"
#include "model/architectures.h"
#include "model/decoder.h"

namespace headscope {

// Tensors by name, whatever files they are in; `find` returns null when there is none. `origin` names them in errors.
struct StoredWeights {
  std::string origin;
  std::function<const TensorView*(std::string_view name)> find;
  std::vector<std::string> names;
};

// What a stored model is once the names of its tensors are looked up.
struct StoredModel {
  const Architecture* architecture = nullptr;
  DecoderConfig config;
  std::string prefix, head;           // of the names of tensors
  std::vector<std::string> warnings;  // tensors that are not used, a tied head that differs
};

// Compares every tensor that the configuration asks for with those that are stored, before memory is taken for any.
// Throws Error(Fault::input) with the names of those that are missing, or with the first whose shape or type is
// another.
StoredModel match_weights(const StoredWeights& weights, const Architecture& architecture, const DecoderConfig& config);

// Fills every parameter of the model, which has the configuration of `stored`: one copy in float32, whatever the type
// in the file. Throws Error(Fault::input) naming a tensor of a published model that holds NaN or infinity.
void load_weights(const StoredWeights& weights, const StoredModel& stored, const Decoder& model);

}  // namespace headscope
