// Rotary position embedding (RoPE): neighbouring pairs (2i, 2i+1) of a head vector at position t are turned by the
// angle t · base^(-2i/d).
#pragma once

#include <ATen/ATen.h>

namespace headscope {

// e^{i·angle} for each position and pair, complex [positions, d/2]: computed in float64, then rounded to `type`.
at::Tensor rotary_table(std::int64_t positions, std::int64_t d, double base, at::ScalarType type = at::kFloat);

// x_bthd: any float type, its type is returned; table: complex [>= t, d/2].
at::Tensor rotate(const at::Tensor& x_bthd, const at::Tensor& table);

}  // namespace headscope
