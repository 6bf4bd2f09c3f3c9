// The standard normal distribution.
#pragma once

#include <span>

namespace headscope {

// Phi(z), to full double accuracy in both tails: relative error below 4 eps for all z whose Phi is a normal number
// (z > -37.5), and below one step of the subnormal numbers beyond. NaN in, NaN out. Many values
// at once are vectorised and give the same bits; `out` has the size of z and may be z itself.
double normal_cdf(double z);
void normal_cdf(std::span<const double> z, std::span<double> out);

// 4 p (1 - p) with p = Phi(z): the plasticity of a comparison whose score difference has standardised mean z.
// Evaluated as 4 Phi(-|z|) (1 - Phi(-|z|)), so that it keeps full relative accuracy for large |z|.
// `out` has the size of z and may be z itself.
void normal_plasticity(std::span<const double> z, std::span<double> out);

}  // namespace headscope
