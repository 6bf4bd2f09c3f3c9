// max(x, 0)² on a GPU: one pass each way.
#pragma once

#include <cstdint>

#include "ops/cuda/element_type.h"

namespace headscope::cuda {

// Contiguous arrays of `count` elements on the device; queued on `stream`.
void squared_relu_forward(const void* x, void* y, std::int64_t count, ElementType type, CUstream_st* stream);
// dx = 2·max(x, 0)·dy
void squared_relu_backward(const void* x, const void* dy, void* dx, std::int64_t count, ElementType type,
                           CUstream_st* stream);

}  // namespace headscope::cuda
