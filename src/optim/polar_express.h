// Polar Express (Amsel, Persson, Musco, Gower 2025): a matrix polynomial that brings every singular value near 1 and so
// approximates the orthogonal factor of the polar decomposition, with matrix products alone.
#pragma once

#include <ATen/ATen.h>

namespace headscope {

constexpr int polar_express_steps = 5;

// x: [..., rows, columns], any number of matrices at once. The result has the type that it was computed in: bfloat16 on
// a GPU, the type of x on a CPU.
at::Tensor polar_express(const at::Tensor& x);

}  // namespace headscope
