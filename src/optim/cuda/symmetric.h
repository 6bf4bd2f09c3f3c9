// Symmetric matrices on a GPU of which the lower triangle is known. float16 [matrices, n, n], contiguous.
#pragma once

#include <cstdint>

#include "ops/cuda/element_type.h"

namespace headscope::cuda {

// Both triangles from the lower one.
void mirror(void* symmetric, std::int64_t matrices, int n, CUstream_st* stream);

// square <- a·I + b·gram + c·square, both triangles from the lower ones.
struct Polynomial {
  float a, b, c;
};
void polynomial(const void* gram, void* square, std::int64_t matrices, int n, const Polynomial& polynomial,
                CUstream_st* stream);

}  // namespace headscope::cuda
