// Measured values of the heads of one layer.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string_view>
#include <vector>

namespace headscope {

// Values of the layer's heads by the name of the measurement (heads/metrics.h).
using HeadValues = std::map<std::string_view, std::vector<double>>;

// The values of one head, and the values of heads that were measured one by one.
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
