// The standard normal and Student's t distribution, and a p-value in a sentence.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <string>

#include "core/text.h"

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

// Student's t: P(|T| >= |t|) for T with `df` > 0 degrees of freedom, the p-value of a two-sided test. Infinite df is
// the normal distribution. Relative error below 1e-12. NaN for NaN or df <= 0.
double student_t_two_sided(double t, double df);

// P(T <= t), by the same function.
double student_t_cdf(double t, double df);

// The t with P(T <= t) = p, 0 < p < 1: 0.975 gives the half width of a 95 % interval in standard errors.
double student_t_quantile(double p, double df);

// "p = 0.42", "p < 0.001", "p unknown". A p below 0.05 never reads 0.05: it gets more digits.
inline std::string p_text(double p) {
  if (std::isnan(p)) return "p unknown";
  if (p < 0.001) return "p < 0.001";
  return p < 0.05 && p >= 0.0495 ? "p = " + fixed_text(p, 4, {0.05}) : fmt::format("p = {:.2g}", p);
}

}  // namespace headscope
