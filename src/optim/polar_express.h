// Polar Express (Amsel, Persson, Musco, Gower 2025): a matrix polynomial that brings every singular value near 1 and so
// approximates the orthogonal factor of the polar decomposition, with matrix products alone.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace headscope {

// x: [..., rows, columns], any number of matrices at once. The result has the type that it was computed in: float16 on
// a GPU, the type of x on a CPU.
at::Tensor polar_express(const at::Tensor& x);

// The norm is divided by slightly more than itself, so that rounding cannot push a singular value past 1: matrices of
// norm f are scaled by 1 / (norm_margin·f + norm_eps).
constexpr double norm_margin = 1.01, norm_eps = 1e-7;
at::Tensor with_norm_below_one(const at::Tensor& x);

// Elements of half precision below 6e-5 have fewer bits: matrices are kept so many times as large.
constexpr double raised = 256;

// The same in memory that is given, for groups of matrices with one short side n. The products on that side of all
// groups run together.
//   x: [matrices, rows, columns] of each group, each raised · with_norm_below_one: it is overwritten; float16 on a GPU
//   spare: as x
//   blocks: a symmetric product is computed by so many blocks of rows, up to the diagonal, if they divide n; 0: as many
//           as are fastest
// Returns tensors of x or of spare, not raised. The arguments are the whole work space but for three times
// [matrices, n, n].
std::vector<at::Tensor> polar_express(std::vector<at::Tensor> x, std::vector<at::Tensor> spare,
                                      std::int64_t blocks = 0);

}  // namespace headscope
