#include "stats/distributions.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <utility>

#include "core/error.h"
#include "core/missing.h"

namespace headscope {
namespace {

// Beyond z = 39 the tail is below the smallest subnormal number.
constexpr double kLargest = 40;

// (z + 1) exp(z^2/2) Phi(-z) on 0 <= z <= 40 is nearly flat (0.5 to 0.41), so a polynomial in t = (z - 5)/(z + 5) fits
// it. Degree 22, interpolated at Chebyshev points with 60 digits (mpmath); relative error 0.33 eps, rounding of the
// coefficients included. The second one is rounded so that Phi(0) is exactly 1/2.
constexpr std::array kScaledTail = {
    0.46151582985003775,    -0.09155228183400882,   0.03103036842596338,    0.010002352385204274,
    -0.026401042966303377,  0.024536963244480906,   -0.015170415402300888,  0.00652200065602172,
    -0.0016760723509154356, 7.791692131159477e-06,  0.0001823342156756057,  -5.3608037514625635e-05,
    -9.896519380427111e-06, 9.061184935388098e-06,  -6.883972175738501e-08, -1.309925137980042e-06,
    1.2455844413329595e-07, 1.9880186832899552e-07, -2.186097318751282e-08, -3.193142087507991e-08,
    3.5180215224753573e-10, 3.977719908272422e-09,  7.519514242694345e-10,
};

// 1/k!: Taylor's series of exp to degree 13 has relative error 4e-18 for |r| <= ln(2)/2.
constexpr auto kExponential = [] {
  std::array<double, 14> inverse_factorial{};
  double factorial = 1;
  for (std::size_t k = 0; k < inverse_factorial.size(); ++k) {
    if (k > 1) factorial *= static_cast<double>(k);
    inverse_factorial[k] = 1 / factorial;
  }
  return inverse_factorial;
}();

// Horner's rule, unrolled by the fold: a loop here would keep the loop over values from being vectorised.
template <std::size_t N>
[[gnu::always_inline]] inline double polynomial(const std::array<double, N>& coefficients, double x) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    double sum = coefficients[N - 1];
    ((sum = std::fma(sum, x, coefficients[N - 2 - K])), ...);
    return sum;
  }
  (std::make_index_sequence<N - 1>{});
}

// exp(-z^2/2) for 0 <= z <= 40. The rounding of z^2 is carried along: exp would magnify it by z^2/2. Branch-free, so
// that a loop over it is vectorised; every fused multiplication is written out, so that scalar and vector code agree.
[[gnu::always_inline]] inline double gaussian(double z) {
  constexpr double ln2_high = 0x1.62e42fefa39efp-1, ln2_low = 0x1.abc9e3b39803fp-56;
  constexpr double to_integer = 0x1.8p52;  // adding it rounds to an integer, kept in the low bits of the mantissa
  constexpr std::uint64_t bias = 600;  // the power of two is built as 2^(k+600) * 2^-600: the result may be subnormal
  const double square = z * z;
  const double square_low = std::fma(z, z, -square);
  const double exponent = -0.5 * square;
  const double shifted = std::fma(exponent, std::numbers::log2e, to_integer);
  const double k = shifted - to_integer;
  const double r = std::fma(-0.5, square_low, std::fma(-k, ln2_low, std::fma(-k, ln2_high, exponent)));
  const auto power = std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) + 1023 + bias) << 52);
  return polynomial(kExponential, r) * power * 0x1p-600;
}

// Phi(-z) = scaled * gaussian for z >= 0. NaN passes through the first factor; beyond kLargest the second is 0.
struct UpperTail {
  double scaled, gaussian;
};

[[gnu::always_inline]] inline UpperTail upper_tail(double z) {
  const double scaled = polynomial(kScaledTail, 1 - 10 / (z + 5)) / (z + 1);
  // Bits of positive doubles are in the order of the values; comparing the doubles would prevent vectorisation.
  const auto clamped = std::min(std::bit_cast<std::int64_t>(z), std::bit_cast<std::int64_t>(kLargest));
  return {scaled, gaussian(std::bit_cast<double>(clamped))};
}

[[gnu::always_inline]] inline double cdf(double z) {
  // 1 for positive z, else 0.
  const std::uint64_t not_negative = (std::bit_cast<std::uint64_t>(z) >> 63) - 1;
  const auto step = std::bit_cast<double>(not_negative & std::bit_cast<std::uint64_t>(1.0));
  const UpperTail tail = upper_tail(std::fabs(z));
  return std::fabs(std::fma(-tail.scaled, tail.gaussian, step));
}

[[gnu::always_inline]] inline double plasticity(double z) {
  const UpperTail tail = upper_tail(std::fabs(z));
  const double twice = 2 * tail.scaled;
  return twice * tail.gaussian * std::fma(-twice, tail.gaussian, 2.0);
}

}  // namespace

double normal_cdf(double z) {
  return cdf(z);
}

void normal_cdf(std::span<const double> z, std::span<double> out) {
  HEADSCOPE_CHECK(z.size() == out.size(), "{} values, room for {}", z.size(), out.size());
  for (std::size_t i = 0; i < z.size(); ++i) out[i] = cdf(z[i]);
}

void normal_plasticity(std::span<const double> z, std::span<double> out) {
  HEADSCOPE_CHECK(z.size() == out.size(), "{} values, room for {}", z.size(), out.size());
  for (std::size_t i = 0; i < z.size(); ++i) out[i] = plasticity(z[i]);
}

// Student's t, through the regularised incomplete beta function.
namespace {

// From here on the continued fraction loses more to cancellation (about df eps) than Hill's expansion leaves out.
constexpr double many_degrees = 1e4;

// ln Gamma(x) - [(x - 1/2) ln x - x + ln(2 pi)/2] for x >= 10: Stirling's series, remainder below 1e-17 there.
double stirling_correction(double x) {
  constexpr double terms[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                              1.0 / 1188, -691.0 / 360360, 1.0 / 156,  -3617.0 / 122400};
  const double square = 1 / (x * x);
  double sum = 0;
  for (int i = 7; i >= 0; --i) sum = sum * square + terms[i];
  return sum / x;
}

// ln B(a, b). Differences of ln Gamma would lose all digits for large arguments.
double log_beta(double a, double b) {
  const double p = std::min(a, b);
  const double q = std::max(a, b);
  if (q < 10) return std::lgamma(p) + std::lgamma(q) - std::lgamma(p + q);
  const double log_rest = std::log1p(-p / (p + q));
  const double correction = stirling_correction(q) - stirling_correction(p + q);
  if (p < 10) return std::lgamma(p) + correction + p - p * std::log(p + q) + (q - 0.5) * log_rest;
  return 0.5 * std::log(2 * std::numbers::pi / q) + stirling_correction(p) + correction +
         (p - 0.5) * std::log(p / (p + q)) + q * log_rest;
}

// The continued fraction 1 / (1 + d1 / (1 + d2 / (1 + ...))) by Lentz's method; converges fast for x < (a+1)/(a+b+2).
double beta_fraction(double a, double b, double x) {
  constexpr double tiny = 1e-300;
  constexpr int most_steps = 10'000;  // some hundred suffice up to a of 1e5
  const auto away_from_zero = [](double value) { return std::fabs(value) < tiny ? tiny : value; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int step = 1; step <= most_steps; ++step) {
    const double m = step;
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    fraction *= d * c;
    if (std::fabs(d * c - 1) < 1e-15) break;
  }
  return fraction;
}

// ln x where x may be close to 1 and y = 1 - x is the exact one.
double log_of(double x, double y) {
  return x > 0.5 ? std::log1p(-y) : std::log(x);
}

// The z whose normal tails are those of t: z^2 = a ln(1 + t^2/df) with a = df - 1/2, and two terms of the expansion in
// 1/b, b = 48 a^2 (G. W. Hill, Algorithm 395, Communications of the ACM 13, 1970).
double normal_equivalent(double t, double df) {
  const double a = df - 0.5;
  const double b = 48 * a * a;
  const double square = a * std::log1p(t / df * t);
  if (std::isinf(df) || std::isinf(square)) return t;
  const double z = std::sqrt(square);
  const double first = (square + 3) * z / b;
  const double second =
      (((4 * square + 33) * square + 240) * square + 855) * z / (10 * b * (b + 0.8 * square * square + 100));
  return z + first - second;
}

// I_x(a, b) = 1/B(a, b) * integral of u^(a-1) (1-u)^(b-1) over 0..x, for a, b > 0 and x in (0, 1), by its continued
// fraction (DLMF 8.17.22). `y` is 1 - x, which the caller knows more exactly than the difference would be.
double regularised_incomplete_beta(double a, double b, double x, double y) {
  if (y == 0) return 1;
  const double front = std::exp(a * log_of(x, y) + b * log_of(y, x) - log_beta(a, b));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, y) / b;
}

}  // namespace

double student_t_two_sided(double t, double df) {
  if (std::isnan(t) || !(df > 0)) return missing;
  const double size = std::fabs(t);
  if (df > many_degrees) return 2 * normal_cdf(-normal_equivalent(size, df));
  const double square = size / df * size;
  // x = df / (df + t^2) = 1 / (1 + square) would be 0: the leading term of the tail is all of it.
  if (square > 1e300)
    return std::exp(df * (std::log(df) / 2 - std::log(size)) - std::log(df / 2) - log_beta(df / 2, 0.5));
  const double x = 1 / (1 + square);
  const double y = square / (1 + square);
  return regularised_incomplete_beta(df / 2, 0.5, x, y);
}

double student_t_cdf(double t, double df) {
  const double tail = student_t_two_sided(t, df) / 2;
  return t > 0 ? 1 - tail : tail;
}

double student_t_quantile(double p, double df) {
  if (!(p > 0 && p < 1) || !(df > 0)) return missing;
  if (p == 0.5) return 0;
  const double tail = std::min(p, 1 - p);  // exact: 1 - p loses nothing above 1/2
  // Bisection until no number lies between the ends: the tail falls from 1/2 at 0 to 0 at infinity.
  double low = 0;
  double high = 1;
  while (student_t_two_sided(high, df) / 2 > tail && high < 1e300) high *= 2;
  while (true) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (student_t_two_sided(middle, df) / 2 > tail ? low : high) = middle;
  }
  return p < 0.5 ? -high : high;
}

}  // namespace headscope
