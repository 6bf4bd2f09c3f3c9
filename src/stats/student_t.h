// Student's t distribution, through the regularised incomplete beta function.
#pragma once

namespace headscope {

// P(|T| >= |t|) for T with `df` > 0 degrees of freedom: the p-value of a two-sided test. Infinite df is the normal
// distribution. Relative error below 1e-12. NaN for NaN or df <= 0.
double student_t_two_sided(double t, double df);

// The t with P(T <= t) = p, 0 < p < 1: 0.975 gives the half width of a 95 % interval in standard errors.
double student_t_quantile(double p, double df);

}  // namespace headscope
