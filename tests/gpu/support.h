// What tests on a GPU share.
#pragma once

#include <ATen/ATen.h>

#include "ops/device.h"

namespace headscope::test {

inline const ComputeDevice& gpu() {
  static const ComputeDevice device = choose_device("cuda");
  return device;
}

inline double relative_error(const at::Tensor& actual, const at::Tensor& exact) {
  const at::Tensor wide = actual.detach().to(at::kCPU, at::kDouble), wanted = exact.detach().cpu();
  return ((wide - wanted).norm() / wanted.norm()).item<double>();
}

}  // namespace headscope::test
