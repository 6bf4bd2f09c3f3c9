// Tensors with their names: parameters, or the state of an optimizer.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

namespace headscope {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

}  // namespace headscope
