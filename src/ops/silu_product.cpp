#include "ops/silu_product.h"

#include "ops/cpu/elementwise.h"
#include "ops/gradients.h"

namespace headscope {

at::Tensor silu_product(const at::Tensor& gate, const at::Tensor& up) {
  if (!takes_cpu_kernels(gate, up) || !gate.is_contiguous() || !up.is_contiguous()) return at::silu(gate) * up;
  cpu::silu_product(gate.mutable_data_ptr<float>(), up.const_data_ptr<float>(), gate.numel());
  return gate;
}

}  // namespace headscope
