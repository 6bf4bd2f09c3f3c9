// Values of heads from tensors.
#pragma once

#include <ATen/ATen.h>

#include <functional>
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

// Values that a GPU may still be computing: work on it is queued, and nothing has waited for it.
struct PendingValues {
  HeadValues known = {};  // what needs no device
  at::Tensor sums = {};   // the rest is made of these, float64 on the device; undefined: there is no rest
  std::function<HeadValues(const double* sums)> values_of = {};  // once they are on the CPU

  // Waits for the device.
  [[nodiscard]] HeadValues wait() const {
    return sums.defined() ? values_of(sums.cpu().contiguous().const_data_ptr<double>()) : known;
  }
};

}  // namespace headscope
