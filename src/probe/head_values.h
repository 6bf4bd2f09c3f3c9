// Values of heads from tensors.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <vector>

#include "heads/metrics.h"

namespace headscope {

// Those of one head, and of heads that were measured one by one.
using OneHead = std::map<std::string_view, double>;
inline HeadValues by_metric(const std::vector<OneHead>& heads) {
  HeadValues values;
  for (const OneHead& head : heads)
    for (const auto& [metric, value] : head) values[metric].push_back(value);
  return values;
}

// The values of a vector of any type, on any device.
inline std::vector<double> to_doubles(const at::Tensor& values_h) {
  const at::Tensor wide = values_h.detach().to(at::kCPU, at::kDouble).contiguous();
  return {wide.const_data_ptr<double>(), wide.const_data_ptr<double>() + wide.numel()};
}

}  // namespace headscope
