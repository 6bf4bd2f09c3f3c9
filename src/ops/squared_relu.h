// max(x, 0)², the activation of the feed-forward layer.
#pragma once

#include <ATen/ATen.h>

namespace headscope {

at::Tensor squared_relu(const at::Tensor& x);

// The two passes themselves, in place: for code that takes its gradients itself. x becomes the activation y.
void squared_relu_forward_(at::Tensor& x);
// dy becomes dx = 2·√y·dy.
void squared_relu_backward_(const at::Tensor& y, at::Tensor& dy);

}  // namespace headscope
