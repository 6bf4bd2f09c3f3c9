// Student's t distribution, through the regularised incomplete beta function.
#pragma once

namespace headscope {

// I_x(a, b) = 1/B(a, b) * integral of u^(a-1) (1-u)^(b-1) over 0..x, for a, b > 0. `y` is 1 - x: who knows it more
// exactly than 1 - x can say passes it. Continued fraction (DLMF 8.17.22). NaN for anything outside.
double regularised_incomplete_beta(double a, double b, double x, double y);

// P(T <= t) for T with `df` > 0 degrees of freedom; infinite df is the normal distribution. Relative error below 1e-12
// in both tails. NaN for NaN or df <= 0.
double student_t_cdf(double t, double df);

// P(|T| >= |t|): the p-value of a two-sided test.
double student_t_two_sided(double t, double df);

// The t with P(T <= t) = p, 0 < p < 1: 0.975 gives the half width of a 95 % interval in standard errors.
double student_t_quantile(double p, double df);

}  // namespace headscope
