// Gradients of gains come as partial sums over fixed sets of rows. This adds them up, those of all gains of a model at
// once: one by one they would be a hundred small kernels.
#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace headscope {

struct PartialSums {
  at::Tensor gradient;
  at::Tensor parts;  // [parts, elements of gradient]
};
// gradient <- kept · gradient + Σ parts; kept: 1 or 0.
void add_partial_sums(const std::vector<PartialSums>& all, int kept = 1);

}  // namespace headscope
