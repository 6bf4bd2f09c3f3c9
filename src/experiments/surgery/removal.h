// Keys without some of their dimensions: which ones go first, and taking them out.
#pragma once

#include <vector>

#include "experiments/surgery/options.h"
#include "model/decoder.h"

namespace headscope {

// The directions of a layer's key heads, in the order in which they are removed: coordinate axes or columns of a basis.
struct LayerDirections {
  at::Tensor axes_hd;    // int64
  at::Tensor basis_hdd;  // float64, orthonormal; undefined where the directions are axes
};
using Directions = std::vector<LayerDirections>;  // one for each layer of the model

// By |γ_k|, which the heads of a layer share. The model has learned gains.
Directions gain_directions(const Decoder& model, RemovalOrder order);

// By singular value: the right singular vectors of each head's keys on these tokens (after QK-Norm, before RoPE, not
// centred, computed in the type of the weights), from the Gram matrix in float64.
Directions singular_directions(const Decoder& model, const at::Tensor& tokens_bt, RemovalOrder order);

// numpy.random.default_rng(seed).choice(d_k, d_k, replace=False) for the heads of layer 0, then of layer 1, …
Directions random_directions(const Decoder& model, std::uint64_t seed);

// The dimensions that a share of d is, to the nearest whole number.
std::int64_t removed_dimensions(double share, std::int64_t d);

// Sets the first `count` directions to zero, in the layers named: axes exactly, others by projection in float32 (or
// float64, where the keys are). No edit at all for a count of 0, zero keys for d_k.
EditKeys removal(const Directions& directions, std::int64_t count, const std::vector<std::int64_t>& layers);

}  // namespace headscope
