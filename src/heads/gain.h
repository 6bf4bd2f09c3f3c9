// QK-Norm's learned gains: how far they are from uniform.
#pragma once

#include <vector>

namespace headscope {

// Coefficient of variation: standard deviation (n - 1) over |mean|. 0 for a uniform gain.
double coefficient_of_variation(const std::vector<double>& values);

}  // namespace headscope
