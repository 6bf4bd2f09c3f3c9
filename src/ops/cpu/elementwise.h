// Operations of a pass without gradients on a CPU that read and write every number once, in float32.
#pragma once

#include <cstdint>

#include "ops/cpu/attention.h"

namespace headscope::cpu {

// y = x · gain / sqrt(mean x² + eps) for rows of d; gain [d] or null. x and y may be the same.
void rms_norm(const float* x, const float* gain, float* y, std::int64_t rows, std::int64_t d, float eps);

// Turns pairs of dimensions (ops/attention.h, rotate): table [t, pairs] of (cos, sin); writes [b, t, heads, d],
// contiguous.
void rotate(const HeadRows& x, std::int64_t b, std::int64_t t, std::int64_t heads, std::int64_t d, const float* table,
            std::int64_t pairs, bool halves, float* y);

// gate = silu(gate) · up
void silu_product(float* gate, const float* up, std::int64_t count);

}  // namespace headscope::cpu
