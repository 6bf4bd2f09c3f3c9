// Gradients of gains come as partial sums over fixed sets of rows. This adds them up, those of all gains of a model at
// once: one by one they would be a hundred small kernels.
#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace headscope {

struct PartialSums {
  at::Tensor gradient;  // gets the sum, as a further summand
  at::Tensor parts;     // [parts, elements of gradient]
};
void add_partial_sums(const std::vector<PartialSums>& all);

}  // namespace headscope
