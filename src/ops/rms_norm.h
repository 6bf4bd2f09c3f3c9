// RMSNorm over the last dimension: x / sqrt(mean(x²) + eps), times a gain. Over the model width before each sub-layer,
// and over d_k on queries and keys (QK-Norm, seed 004).
#pragma once

#include <ATen/ATen.h>

namespace headscope {

// `gain` broadcasts against x: [d], or [heads, d] for x [..., heads, d]; undefined: no gain. Returns the type of x.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps);

// The two passes themselves, of a sum: for code that takes its gradients itself. sum = x + delta, rounded to the type
// of x; y = rms_norm(sum). Without a delta (undefined), sum is x.
struct NormedSum {
  at::Tensor sum, y;
  at::Tensor inverse;  // 1 / sqrt(mean sum² + eps) of each row
};
NormedSum rms_norm_forward(const at::Tensor& x, const at::Tensor& delta, const at::Tensor& gain, double eps);

// dx: of x and of delta, through the norm, plus d_sum, the gradient that the sum gets otherwise (undefined: none; its
// memory may become dx's). gain_parts: [parts, elements of gain], float32 or float64, to be added up; undefined without
// a gain.
struct NormGradients {
  at::Tensor dx, gain_parts;
};
NormGradients rms_norm_backward(const at::Tensor& sum, const at::Tensor& gain, const at::Tensor& inverse,
                                const at::Tensor& dy, const at::Tensor& d_sum);

}  // namespace headscope
