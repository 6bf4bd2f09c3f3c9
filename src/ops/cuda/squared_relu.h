// max(x, 0)² on a GPU: one pass each way.
#pragma once

#include <cstdint>

#include "ops/cuda/element_type.h"

namespace headscope::cuda {

// Contiguous arrays of `count` elements on the device, aligned to 16 bytes; queued on `stream`. y may be x, dx may be
// dy.
void squared_relu_forward(const void* x, void* y, std::int64_t count, ElementType type, CUstream_st* stream);
// dx = 2·max(x, 0)·dy
void squared_relu_backward(const void* x, const void* dy, void* dx, std::int64_t count, ElementType type,
                           CUstream_st* stream);
// The same of y = max(x, 0)²: dx = 2·√y·dy. The root of the rounded square is as near to max(x, 0) as rounding it is.
void squared_relu_backward_of_output(const void* y, const void* dy, void* dx, std::int64_t count, ElementType type,
                                     CUstream_st* stream);

}  // namespace headscope::cuda
