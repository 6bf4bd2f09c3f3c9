// max(x, 0)², the activation of the feed-forward layer.
#pragma once

#include <ATen/ATen.h>

namespace headscope {

at::Tensor squared_relu(const at::Tensor& x);

}  // namespace headscope
