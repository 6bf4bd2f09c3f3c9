// Tensors with their names: parameters, or the state of an optimizer.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

namespace headscope {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// A matrix of a layer; its parts are parameters stacked by rows.
struct LayerMatrix {
  std::string name;
  std::vector<at::Tensor> parts;
};

}  // namespace headscope
