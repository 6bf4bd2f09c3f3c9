// Vectors of heads as kernels take them: slices of other tensors without a copy, where their addresses allow it.
#pragma once

#include "ops/cuda/inputs.h"
#include "probe/cuda/head_strides.h"

namespace headscope::cuda {

// Whether the elements of a vector lie side by side and every vector begins at a multiple of `bytes`.
inline bool begins_at_multiples_of(std::int64_t bytes, const at::Tensor& x_bthd) {
  const auto size = static_cast<std::int64_t>(x_bthd.element_size());
  bool fits = x_bthd.size(3) == 1 || x_bthd.stride(3) == 1;
  for (const std::int64_t dim : {0, 1, 2}) fits &= x_bthd.size(dim) == 1 || x_bthd.stride(dim) * size % bytes == 0;
  return fits && reinterpret_cast<std::uintptr_t>(x_bthd.const_data_ptr()) % static_cast<std::uintptr_t>(bytes) == 0;
}

inline at::Tensor head_input(const at::Tensor& x_bthd, std::int64_t bytes) {
  const at::Tensor x = x_bthd.detach();
  return begins_at_multiples_of(bytes, x) ? x : kernel_input(x);
}

inline HeadStrides strides_of(const at::Tensor& x_bthd) {
  return {x_bthd.stride(0), x_bthd.stride(1), x_bthd.stride(2)};
}

}  // namespace headscope::cuda
