// The gradient of an embedding, for code that takes its gradients itself.
#pragma once

#include <ATen/ATen.h>

namespace headscope {

// Adds scale · dx_nm[i] to row tokens_n[i] of gradient_vm, in an order that does not change from run to run.
// gradient_vm is float32 or of the type of dx_nm.
void add_embedding_gradient(at::Tensor& gradient_vm, const at::Tensor& tokens_n, const at::Tensor& dx_nm, double scale);

}  // namespace headscope
