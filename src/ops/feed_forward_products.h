// The two products of a feed-forward layer that squared ReLU goes with, for code that takes its gradients itself. On
// GPUs of compute capability 9.0 the activation is the last step of the product; elsewhere it is a pass of its own.
#pragma once

#include <ATen/ATen.h>

namespace headscope {

// max(x·weightᵀ, 0)². x: [n, m], weight: [f, m].
at::Tensor squared_relu_product(const at::Tensor& x_nm, const at::Tensor& weight_fm);

// The gradient of what squared ReLU was applied to: (d·weight) ⊙ 2·√inner, where inner: [n, f] is its output, d: [n, m]
// the gradient of inner·weightᵀ, and weight: [m, f].
at::Tensor squared_relu_product_backward(const at::Tensor& d_nm, const at::Tensor& weight_mf,
                                         const at::Tensor& inner_nf);

}  // namespace headscope
