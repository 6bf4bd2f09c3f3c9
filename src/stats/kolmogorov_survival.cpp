// P(D_n >= x), by the scheme of Simard and L'Ecuyer (2011, J. Stat. Software 39(11)) with the limits that scipy uses.
// With t = n x:
//   t <= 1/2                      1
//   t <= 1                        1 - n!/n^n (2t - 1)^n                        (Ruben and Gambino)
//   t >= n - 1                    2 (1 - x)^n                                  (Ruben and Gambino)
//   x >= 1/2, or far in the tail  2 P(D_n^+ >= x), Smirnov's sum
//   small n, or small x           1 - Durbin's matrix                          (exact)
//   else                          1 - Pelz and Good's expansion
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/missing.h"
#include "stats/kolmogorov.h"

namespace headscope {
namespace {

constexpr double kPi = std::numbers::pi;

// log(m!) - log(sqrt(2 pi m) (m/e)^m), the error of Stirling's formula. m = 0: the value is not used.
double stirling_error(double m) {
  constexpr std::array exact = {
      0.0,
      0.08106146679532726,
      0.0413406959554093,
      0.02767792568499834,
      0.020790672103765093,
      0.016644691189821193,
      0.013876128823070748,
      0.01189670994589177,
      0.010411265261972096,
      0.009255462182712733,
      0.00833056343336287,
      0.007573675487951841,
      0.00694284010720953,
      0.006408994188004207,
      0.0059513701127588475,
      0.005554733551962801,
  };
  if (m < exact.size()) return exact[static_cast<std::size_t>(m)];
  const double square = m * m;
  return (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - (1.0 / 1680 - 1.0 / 1188 / square) / square) / square) / square) / m;
}

// n!/n^n (2t - 1)^n for 1/2 < t <= 1.
double below_one_step(double t, double n) {
  return std::sqrt(2 * kPi * n) * std::exp(n * (std::log(2 * t - 1) - 1) + stirling_error(n));
}

// Terms of Smirnov's sum that are evaluated. See smirnov_sum.
constexpr std::int64_t kSmirnovTerms = 512;

// P(D_n^+ >= x) = sum_v t/(t + v) Binomial(v; n, p = (t + v)/n) over 0 <= v <= n - t. In the saddle-point form of
// Loader (2000) the exponents, which would be of size n, leave
//   v log(1 + t/v) + (n - v) log(1 - t/(n - v)) + Stirling errors - log(2 pi v (n - v)/n)/2.
double smirnov_term(double v, double t, double n) {
  if (v == 0) return std::exp(n * std::log1p(-t / n));
  const double rest = n - v;
  if (rest <= t) return 0;
  const double exponent = v * std::log1p(t / v) + rest * std::log1p(-t / rest);
  const double stirling = stirling_error(n) - stirling_error(v) - stirling_error(rest);
  return t / (t + v) * std::sqrt(n / (2 * kPi * v * rest)) * std::exp(exponent + stirling);
}

// For large n every h-th term times h is as good as all of them: the terms are samples of a smooth function of q = v/n,
// about exp(-c / (q (1 - q))) with c = n x^2 / 2, that vanishes with all derivatives at both ends, so by Poisson's
// summation formula N samples are wrong by its Fourier coefficient of order N: about exp(-2 sqrt(pi c N) + 4 c)
// relative to the sum while that is small, and exp(-pi^2 N^2 / (16 c)) where the function is a Gaussian. Smirnov's sum
// is used for n > 140 from c = 1.1 on, where N = 512 gives 1e-34, up to c = 185: 1e-379. The end at v = 0 is not quite
// 0 but exp(-t): 1e-18 of the sum at n = 1024, where terms begin to be left out, and less beyond.
double smirnov_sum(double x, std::int64_t n) {
  const double t = static_cast<double>(n) * x;
  const std::int64_t stride = std::max<std::int64_t>(1, n / kSmirnovTerms);
  double sum = 0;
  for (std::int64_t v = 0; v < n; v += stride) sum += smirnov_term(static_cast<double>(v), t, static_cast<double>(n));
  return static_cast<double>(stride) * sum;
}

double smirnov(double x, std::int64_t n) {
  const auto size = static_cast<double>(n);
  if (size * x * x >= 370) return 0;  // exp(-740): scipy's limit
  // Where scipy takes the first-order asymptotic form, so do we.
  if (n > 1'000'000) return std::exp(-(6 * size * x + 1) * (6 * size * x + 1) / (18 * size));
  return smirnov_sum(x, n);
}

// The matrix of Durbin in the form of Marsaglia, Tsang and Wang (2003, J. Stat. Software 8(18)): P(D_n < x) is the
// central element of n!/n^n H^n, where t = k - h, 0 <= h < 1, and H has 2k - 1 rows.
Eigen::MatrixXd durbin_matrix(Eigen::Index k, double h) {
  const Eigen::Index m = 2 * k - 1;
  Eigen::VectorXd inverse_factorial(m + 1);
  inverse_factorial[0] = 1;
  for (Eigen::Index i = 1; i <= m; ++i) inverse_factorial[i] = inverse_factorial[i - 1] / static_cast<double>(i);
  Eigen::MatrixXd matrix = Eigen::MatrixXd::Zero(m, m);
  for (Eigen::Index column = 1; column < m; ++column) {
    matrix.col(column).tail(m - column + 1) = inverse_factorial.head(m - column + 1);
  }
  for (Eigen::Index i = 0; i < m; ++i) {
    matrix(i, 0) = (1 - std::pow(h, static_cast<double>(i + 1))) * inverse_factorial[i + 1];
  }
  const auto power = static_cast<double>(m);
  matrix(m - 1, 0) = (1 - 2 * std::pow(h, power) + std::pow(std::max(2 * h - 1, 0.0), power)) * inverse_factorial[m];
  matrix.row(m - 1).tail(m - 1) = matrix.col(0).head(m - 1).reverse();
  return matrix;
}

// n!/n^n 2^exponent, where n!/n^n = sqrt(2 pi n) exp(-n + Stirling's error) may underflow on its own.
double scaled_factorial_ratio(double n, std::int64_t exponent) {
  const double twos = std::round(n * std::numbers::log2e);
  const double remainder = std::fma(twos, std::numbers::ln2, -n);
  const double ratio = std::sqrt(2 * kPi * n) * std::exp(remainder + stirling_error(n));
  return std::ldexp(ratio, static_cast<int>(exponent - static_cast<std::int64_t>(twos)));
}

double cdf_by_matrix(double x, std::int64_t n) {
  constexpr int step = 128;  // powers of two split off so that the elements stay in range
  const double t = static_cast<double>(n) * x;
  const auto k = static_cast<Eigen::Index>(std::ceil(t));
  Eigen::MatrixXd power = durbin_matrix(k, static_cast<double>(k) - t);
  Eigen::RowVectorXd row = Eigen::RowVectorXd::Unit(power.rows(), k - 1);  // of the product of the powers so far
  std::int64_t row_exponent = 0, power_exponent = 0;
  for (std::int64_t bits = n; bits > 0; bits >>= 1) {
    if (bits & 1) {
      row *= power;
      row_exponent += power_exponent;
    }
    power *= power;
    power_exponent *= 2;
    if (power(k - 1, k - 1) > 0x1p128) {
      power *= 0x1p-128;
      power_exponent += step;
    }
    if (row[k - 1] > 0x1p128) {
      row *= 0x1p-128;
      row_exponent += step;
    }
  }
  return row[k - 1] * scaled_factorial_ratio(static_cast<double>(n), row_exponent);
}

// Pelz and Good (1976, J. R. Stat. Soc. B 38): P(D_n < x) = K0(z) + K1(z)/n^(1/2) + K2(z)/n + K3(z)/n^(3/2), z = x
// sqrt(n), the K as sums over exp(-a^2/(2 z^2)) with a = pi (k + 1/2), and for K2, K3 also a = pi k.
double cdf_by_pelz_good(double x, std::int64_t n) {
  const double root = std::sqrt(static_cast<double>(n));
  const double z = x * root;
  const double z2 = z * z, z4 = z2 * z2, z6 = z4 * z2, z8 = z4 * z4;
  double k0 = 0, k1 = 0, k2 = 0, k3 = 0, k2_whole = 0, k3_whole = 0;
  // The terms fall below exp(-128) of the first.
  for (int k = static_cast<int>(std::ceil(16 * z / kPi)); k >= 0; --k) {
    const double half = kPi * (k + 0.5), h2 = half * half, h4 = h2 * h2;
    const double weight = std::exp(-h2 / (2 * z2));
    k0 += weight;
    k1 += weight * (h2 - z2);
    k2 += weight * (6 * z6 + 2 * z4 + (2 * z4 - 5 * z2) * h2 + (1 - 2 * z2) * h4);
    k3 +=
        weight * (-30 * z6 - 90 * z8 + (135 * z4 - 96 * z6) * h2 + (212 * z4 - 60 * z2) * h4 + (5 - 30 * z2) * h2 * h4);
    const double whole = kPi * k, w2 = whole * whole;
    const double whole_weight = std::exp(-w2 / (2 * z2));
    k2_whole += whole_weight * w2;
    k3_whole += whole_weight * (3 * z2 - w2) * w2;
  }
  const double scale = std::sqrt(2 * kPi);
  const double first = scale / z * k0;
  const double second = scale / (6 * z4) * k1;
  const double third = scale * (k2 / (72 * z6 * z) - k2_whole / (36 * z2 * z));
  const double fourth = scale * (k3 / (6480 * z8 * z2) + k3_whole / (216 * z6));
  return first + (second + (third + fourth / root) / root) / root;
}

}  // namespace

double ks_survival(double d, std::int64_t n) {
  if (std::isnan(d) || n < 1) return missing;
  const auto size = static_cast<double>(n);
  const double t = size * d;
  const double nxx = t * d;
  const auto probability = [](double p) { return std::clamp(p, 0.0, 1.0); };
  if (d >= 1) return 0;
  if (t <= 0.5) return 1;
  if (t <= 1) return probability(1 - below_one_step(t, size));
  if (t >= size - 1) return probability(2 * std::pow(1 - d, size));
  if (d >= 0.5 || (n <= 140 ? nxx > 4 : nxx >= 2.2)) return probability(2 * smirnov(d, n));
  const bool exact = n <= 140 || (n <= 100'000 && size * std::pow(d, 1.5) <= 1.4);
  return probability(1 - (exact ? cdf_by_matrix(d, n) : cdf_by_pelz_good(d, n)));
}

}  // namespace headscope
