// The two-sided one-sample Kolmogorov-Smirnov test against N(0, 1).
#pragma once

#include <cstdint>
#include <span>

namespace headscope {

// D_n = sup |F_n - Phi| of z = (x - mean) / sd, exactly (the largest deviation before or after any sample). O(n):
// samples are binned, and only bins that can hold the supremum are sorted; z is not stored. NaN in, NaN out; NaN for no
// samples.
double ks_statistic(std::span<const double> x, double mean, double sd);

// P(D_n >= d) as scipy.stats.kstwo.sf(d, n): the same choice among exact and asymptotic forms, so the same number
// (within 1e-13; relative error below 1e-11 in the upper tail, down to 1e-300). NaN for d = NaN or n < 1.
double ks_survival(double d, std::int64_t n);

}  // namespace headscope
