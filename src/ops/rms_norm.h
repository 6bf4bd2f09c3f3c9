// RMSNorm over the last dimension: x / sqrt(mean(x²) + eps), times a gain. Over the model width before each sub-layer,
// and over d_k on queries and keys (QK-Norm, seed 004).
#pragma once

#include <ATen/ATen.h>

namespace headscope {

// `gain` broadcasts against x: [d], or [heads, d] for x [..., heads, d]; undefined: no gain. Returns the type of x.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps);

}  // namespace headscope
