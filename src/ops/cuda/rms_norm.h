// RMSNorm on a GPU, of a sum if need be: one pass each way.
#pragma once

#include <cstdint>

#include "ops/cuda/element_type.h"

namespace headscope::cuda {

// Rows of d elements: row r starts at x + (r / inner)·outer_stride + (r % inner)·d, so that a slice of the heads of
// [tokens, heads, d] needs no copy. All other arrays are contiguous.
struct RmsNormShape {
  std::int64_t rows = 0;
  std::int64_t inner = 1;
  std::int64_t outer_stride = 0;
  int d = 0;
  int gains = 0;  // vectors of gain, row r takes r % gains; 0: none
  ElementType type = ElementType::f32;
};

bool supports_rms_norm(int d, ElementType type);

// gain: float32 [gains, d] or null. inverse: float32 [rows], 1 / sqrt(mean x² + eps), kept for the backward pass. With
// a delta (null: none), x + delta is written to `sum`, rounded, and normed.
void rms_norm_forward(const void* x, const void* delta, const float* gain, void* sum, void* y, float* inverse,
                      float eps, const RmsNormShape& shape, CUstream_st* stream);

// The number of partial sums of the gain's gradient that the backward pass writes: float32 [partials, gains, d], to be
// added up by the caller. Each has a fixed set of rows, so the result does not depend on timing.
std::int64_t rms_norm_partials(const RmsNormShape& shape);

// d_sum (null: none) is added to dx, and may be dx.
void rms_norm_backward(const void* x, const float* gain, const float* inverse, const void* dy, const void* d_sum,
                       void* dx, float* gain_partials, const RmsNormShape& shape, CUstream_st* stream);

}  // namespace headscope::cuda
