// Reduced types are computed in float32 inside an operation; float32 and float64 as they are.
#pragma once

#include <ATen/ATen.h>

namespace headscope {

inline at::ScalarType inner_type(at::ScalarType type) {
  return type == at::kBFloat16 || type == at::kHalf ? at::kFloat : type;
}

}  // namespace headscope
