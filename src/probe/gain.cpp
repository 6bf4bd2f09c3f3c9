#include "probe/gain.h"

#include <cmath>

#include "stats/moments.h"

namespace headscope {

std::vector<double> gain_values(const at::Tensor& gain_d) {
  const at::Tensor wide = gain_d.detach().to(at::kCPU, at::kDouble).contiguous();
  return {wide.const_data_ptr<double>(), wide.const_data_ptr<double>() + wide.numel()};
}

double coefficient_of_variation(const std::vector<double>& values) {
  const Moments sample = moments(values);
  return std::sqrt(sample.variance()) / std::abs(sample.mean);
}

}  // namespace headscope
