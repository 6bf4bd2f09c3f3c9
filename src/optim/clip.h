// The norm of all gradients together, and its limit.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

namespace headscope {

// Scales the gradients so that their joint norm is at most `limit`, and returns the norm before. A norm that is not
// finite is returned and nothing is scaled.
double clip_gradients(const std::vector<at::Tensor>& parameters, double limit);

}  // namespace headscope
