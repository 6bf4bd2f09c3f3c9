// The two-sided one-sample Kolmogorov-Smirnov test against N(0, 1), and against a normal distribution whose mean and
// deviation were estimated from the same sample (Lilliefors).
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

// P(D_n >= d) where D_n is that of a normal sample standardised with its own mean and deviation (n - 1): Lilliefors'
// distribution. ks_survival is far too large there.
//   up to 0.1   Dallal and Wilkinson (1986, The American Statistician 40) for n <= 100; a larger n takes the d of 100
//               samples with the same modified statistic D* = d (sqrt n - 0.01 + 0.85 / sqrt n) (Stephens 1974, J. Am.
//               Stat. Assoc. 69)
//   above       the polynomials in D* of R's nortest (lillie.test)
// For n <= 100 this is nortest's number. Beyond, nortest scales d by (n / 100)^0.49, as Dallal and Wilkinson suggest,
// which at n = 20,000 calls a p-value of 0.05 0.07; with D* it is 0.048. By simulation from n = 5 to 20,000, what is
// called 0.05 is 0.046 to 0.055; p-values above 0.1 are off by at most 0.05. NaN for d = NaN or n < 5, for which
// nothing is published.
double lilliefors_survival(double d, std::int64_t n);

}  // namespace headscope
