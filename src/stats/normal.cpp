#include "stats/normal.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <utility>

#include "core/error.h"

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

}  // namespace headscope
