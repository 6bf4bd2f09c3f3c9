#include "probe/gain.h"

#include <cmath>
#include <numeric>

namespace headscope {

std::vector<double> gain_values(const at::Tensor& gain_d) {
  const at::Tensor wide = gain_d.detach().to(at::kCPU, at::kDouble).contiguous();
  return {wide.const_data_ptr<double>(), wide.const_data_ptr<double>() + wide.numel()};
}

double coefficient_of_variation(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (n - 1)) / std::abs(mean);
}

}  // namespace headscope
