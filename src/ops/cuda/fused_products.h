// Products whose last step applies squared ReLU, for GPUs of compute capability 9.0 (H100, H200): bfloat16 in and out,
// sums in float32. The activation is applied to the float32 sum, so a separate pass over memory is saved, and one
// rounding.
#pragma once

#include <cstdint>

#include "ops/cuda/element_type.h"

namespace headscope::cuda {

// c is [rows, columns], the sum runs over `depth`.
struct ProductShape {
  std::int64_t rows, columns, depth;
};

// Whether the current device and this build have the kernels, and they take this shape.
bool supports_fused_products(const ProductShape& shape);

// Contiguous bfloat16 arrays on the current device, aligned to 16 bytes; queued on `stream`. They need no workspace and
// never wait for the device. Only for shapes that are supported. `swizzle`, 1, 2, 4 or 8: how many rows of tiles are
// worked on together, for the second-level cache. False: CUDA refused, and nothing was queued.
// c[rows, columns] = max(a[rows, depth]·b[columns, depth]ᵀ, 0)²
bool squared_relu_product(const void* a, const void* b, void* c, const ProductShape& shape, int swizzle,
                          CUstream_st* stream);
// dx[rows, columns] = a[rows, depth]·b[depth, columns] ⊙ 2·√y[rows, columns], where y is what squared ReLU gave.
bool squared_relu_product_backward(const void* a, const void* b, const void* y, void* dx, const ProductShape& shape,
                                   int swizzle, CUstream_st* stream);

}  // namespace headscope::cuda
