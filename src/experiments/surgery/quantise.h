// Keys rounded to few bits.
#pragma once

#include <vector>

#include "model/decoder.h"

namespace headscope {

// Which keys share a scale: all of the layer, or those of one head and dimension.
enum class ScaleOf { tensor, channel };

// Symmetric, to the nearest, half to even: s·round(k / s) with s = max|k| / (2^(bits-1) - 1) over the keys at hand.
// In float32, or float64 where the keys are; returns their type. Keys that are all zero stay so.
at::Tensor quantised(const at::Tensor& k_bthd, std::int64_t bits, ScaleOf scale_of);

// The same as an edit, in the layers named.
EditKeys quantisation(std::int64_t bits, ScaleOf scale_of, const std::vector<std::int64_t>& layers);

}  // namespace headscope
