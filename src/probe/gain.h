// QK-Norm's learned gains: how far they are from uniform.
#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace headscope {

// The values of a gain vector.
std::vector<double> gain_values(const at::Tensor& gain_d);

// Coefficient of variation: standard deviation (n - 1) over |mean|. 0 for a uniform gain.
double coefficient_of_variation(const std::vector<double>& values);

}  // namespace headscope
