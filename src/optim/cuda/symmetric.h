// Symmetric matrices on a GPU of which the lower triangle is known. bfloat16 [matrices, n, n], contiguous.
#pragma once

#include <cstdint>

#include "ops/cuda/element_type.h"

namespace headscope::cuda {

// gram <- scale²·gram, both triangles from the lower one. scale: float32 [matrices], or null for 1.
void mirror(void* gram, std::int64_t matrices, int n, const float* scale, CUstream_st* stream);

// square <- scale·(a·I + b·gram + c·square), both triangles from the lower ones.
struct Polynomial {
  float a, b, c;
};
void polynomial(const void* gram, void* square, std::int64_t matrices, int n, const Polynomial& polynomial,
                const float* scale, CUstream_st* stream);

}  // namespace headscope::cuda
