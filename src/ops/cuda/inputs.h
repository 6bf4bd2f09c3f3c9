// Tensors as kernels take them, and what the sources that launch kernels include of torch.
#pragma once

#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>

#include "ops/cuda/element_type.h"

namespace headscope::cuda {

inline bool has_kernel_type(const at::Tensor& x) {
  return x.is_cuda() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

inline ElementType element_type(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat ? ElementType::f32 : ElementType::bf16;
}

// To the 16 bytes that a thread reads at once. An undefined tensor is.
inline bool is_aligned(const at::Tensor& x) {
  return !x.defined() || reinterpret_cast<std::uintptr_t>(x.const_data_ptr()) % 16 == 0;
}

// Of an array that may be left out.
inline const float* float_pointer(const at::Tensor& x) {
  return x.defined() ? x.const_data_ptr<float>() : nullptr;
}

// Contiguous, and aligned, which a slice need not be.
inline at::Tensor kernel_input(const at::Tensor& x) {
  const at::Tensor plain = x.detach().contiguous();
  return is_aligned(plain) ? plain : plain.clone();
}

}  // namespace headscope::cuda
