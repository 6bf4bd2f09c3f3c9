// Draws of Gaussian values and of Gram matrices of Gaussian vectors.
#pragma once

#include <cstdint>
#include <vector>

#include "core/random.h"

namespace headscope {

// Standard normal, by two uniform draws (Box and Muller 1958).
double draw_normal(NumpyGenerator& generator);

// XᵀX of n rows of d independent standard normal values, d·d values: Wishart's distribution, without drawing the rows
// (Bartlett 1933). Its cost does not grow with n.
std::vector<double> draw_gaussian_gram(std::int64_t n, std::int64_t d, NumpyGenerator& generator);

}  // namespace headscope
