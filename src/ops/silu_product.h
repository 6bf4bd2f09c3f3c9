// The gate of a feed-forward layer.
#pragma once

#include <ATen/ATen.h>

namespace headscope {

// silu(gate) · up, of one shape. `gate` is not used afterwards: its memory may become the result's.
at::Tensor silu_product(const at::Tensor& gate, const at::Tensor& up);

}  // namespace headscope
