// What attention does with queries, keys and values: rotary position embedding, and causal grouped-query attention.
#pragma once

#include <ATen/ATen.h>

namespace headscope {

// Rotary position embedding (RoPE): neighbouring pairs (2i, 2i+1) of a head vector at position t are turned by the
// angle t · base^(-2i/d). The table holds e^{i·angle} for each position and pair, complex [positions, d/2]: it is
// computed in float64, then rounded to `type`.
at::Tensor rotary_table(std::int64_t positions, std::int64_t d, double base, at::ScalarType type = at::kFloat);

// x_bthd: any float type, its type is returned; table: complex [>= t, d/2].
at::Tensor rotate(const at::Tensor& x_bthd, const at::Tensor& table);

// softmax(scale · q·k, keys up to the query's own position) · v. Query head h reads key head h / (query heads / key
// heads). All [b, t, heads, d]; returns [b, t, query heads, d].
at::Tensor causal_attention(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const at::Tensor& v_bthd, double scale);

}  // namespace headscope
