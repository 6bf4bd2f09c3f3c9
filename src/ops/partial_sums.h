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
// gradient <- gradient + Σ parts; unless it `adds`, what was there does not count.
void add_partial_sums(const std::vector<PartialSums>& all, bool adds = true);

}  // namespace headscope
