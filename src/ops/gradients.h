// Whether an operation may take a way that keeps nothing for gradients.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace headscope {

// Somebody may ask for gradients of one of these.
template <class... Tensors>
bool needs_gradients(const Tensors&... tensors) {
  return at::GradMode::is_enabled() && (... || (tensors.defined() && tensors.requires_grad()));
}

// The kernels in ops/cpu take it: float32 on a CPU, and nobody asks for gradients.
template <class... Tensors>
bool takes_cpu_kernels(const Tensors&... tensors) {
  return (... && (!tensors.defined() || (tensors.is_cpu() && tensors.scalar_type() == at::kFloat))) &&
         !needs_gradients(tensors...);
}

}  // namespace headscope
