// Causal grouped-query attention: softmax(scale · q·k, keys up to the query's own position) · v.
#pragma once

#include <ATen/ATen.h>

namespace headscope {

// Query head h reads key head h / (query heads / key heads). All [b, t, heads, d]; returns [b, t, query heads, d].
at::Tensor causal_attention(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const at::Tensor& v_bthd, double scale);

}  // namespace headscope
