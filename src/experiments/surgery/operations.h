// Operations on keys: edits (without some of their dimensions, or rounded to few bits), and the validation loss of a
// model after them.
#pragma once

#include <functional>
#include <vector>

#include "core/console.h"
#include "heads/surgery.h"
#include "model/decoder.h"
#include "probe/probe.h"

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

// Which keys share a scale: all of the layer, or those of one head and dimension.
enum class ScaleOf { tensor, channel };

// Symmetric, to the nearest, half to even: s·round(k / s) with s = max|k| / (2^(bits-1) - 1) over the keys at hand.
// In float32, or float64 where the keys are; returns their type. Keys that are all zero stay so.
at::Tensor quantised(const at::Tensor& k_bthd, std::int64_t bits, ScaleOf scale_of);

// The same as an edit, in the layers named.
EditKeys quantisation(std::int64_t bits, ScaleOf scale_of, const std::vector<std::int64_t>& layers);

// The losses after every operation that the options name, on the same batches; singular directions are those of the
// first. `before_each` is called before every operation; what it throws ends the work.
SurgeryLosses measure_surgery(const Decoder& model, const std::vector<Batch>& batches, at::ScalarType type,
                              const SurgeryOptions& options, Console& console,
                              const std::function<void()>& before_each);

}  // namespace headscope
