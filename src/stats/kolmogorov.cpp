#include "stats/kolmogorov.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/missing.h"
#include "stats/distributions.h"

namespace headscope {

// D_n: the supremum without sorting all samples. With F_n and Phi known at the edges of fine bins,
//   D >= |F_n(e) - Phi(e)| at every edge e, and
//   samples of a bin [a, b) deviate by at most max(F_n(b) - Phi(a), Phi(b) - F_n(a)),
// so only bins whose bound reaches the best edge are sorted and evaluated: a few per cent of the samples.
namespace {

// Below this, sorting everything is faster than looking at every bin.
constexpr std::size_t kSortAll = 128;

// Far above the rounding of the bounds (a few eps), far below anything that would make bins useless.
constexpr double kSlack = 1e-12;

// Bins of equal width in z on [-kSpan, kSpan). The outermost two are open, which changes no bound: Phi(-kSpan) is
// 1e-17.
class Bins {
 public:
  explicit Bins(int per_unit) : per_unit_(per_unit), phi_(static_cast<std::size_t>(2 * kSpan * per_unit) + 1) {
    for (std::size_t i = 0; i < phi_.size(); ++i) phi_[i] = static_cast<double>(i) / per_unit - kSpan;
    normal_cdf(phi_, phi_);
    last_ = static_cast<double>(count() - 1);
  }

  [[nodiscard]] std::size_t count() const { return phi_.size() - 1; }
  // Phi at the edges: bin b lies between phi()[b] and phi()[b + 1].
  [[nodiscard]] const std::vector<double>& phi() const { return phi_; }
  // NaN falls into bin 0.
  [[nodiscard]] std::int32_t index(double z) const {
    double position = (z + kSpan) * per_unit_;
    position = position > 0 ? position : 0;
    position = position < last_ ? position : last_;
    return static_cast<std::int32_t>(position);
  }

 private:
  static constexpr double kSpan = 8.5;
  double per_unit_;
  double last_ = 0;
  std::vector<double> phi_;
};

// D is about 0.6 / sqrt(n) for normal samples; the mass of a bin (at most 0.4 / per_unit) has to stay well below it.
const Bins& bins_for(std::size_t n) {
  static const Bins coarse(512);
  if (n <= 30'000) return coarse;
  static const Bins medium(1024);
  if (n <= 200'000) return medium;
  static const Bins fine(4096);
  return fine;
}

// The largest deviation at samples of which the first has rank `rank` among all n; phi_sorted is Phi of them, sorted.
double deviation_at(std::span<const double> phi_sorted, std::size_t rank, std::size_t n) {
  const auto count = static_cast<double>(n);
  double largest = 0;
  for (std::size_t i = 0; i < phi_sorted.size(); ++i) {
    const auto below = static_cast<double>(rank + i);
    largest = std::max(largest, std::max((below + 1) / count - phi_sorted[i], phi_sorted[i] - below / count));
  }
  return largest;
}

double by_sorting(std::vector<double> z) {
  if (std::ranges::any_of(z, [](double value) { return std::isnan(value); })) return missing;
  std::ranges::sort(z);
  normal_cdf(z, z);
  return deviation_at(z, 0, z.size());
}

// A bin that can hold the supremum. Its samples are first .. first + count of those collected.
struct Candidate {
  std::size_t first = 0, count = 0;
  std::size_t rank = 0;  // samples in lower bins
};

struct Search {
  std::vector<Candidate> candidates;
  std::vector<std::int32_t> slot_of_bin;  // where the next sample of a bin goes; -1 for the other bins
  std::size_t samples = 0;                // of all candidates
};

Search find_candidates(const Bins& bins, const std::vector<std::int32_t>& count, std::size_t n) {
  // Outside the occupied bins F_n is 0 or 1, and its deviation is largest at their outer edges.
  const auto occupied = [](std::int32_t samples) { return samples > 0; };
  const auto begin = static_cast<std::size_t>(std::find_if(count.begin(), count.end(), occupied) - count.begin());
  const auto end = static_cast<std::size_t>(count.rend() - std::find_if(count.rbegin(), count.rend(), occupied));
  const auto size = static_cast<Eigen::Index>(end - begin);
  const double per_sample = 1 / static_cast<double>(n);

  Eigen::ArrayXd below(size + 1);  // F_n at the edges
  std::int32_t cumulated = 0;
  below[0] = 0;
  for (Eigen::Index b = 0; b < size; ++b) {
    cumulated += count[begin + static_cast<std::size_t>(b)];
    below[b + 1] = cumulated * per_sample;
  }
  const Eigen::Map<const Eigen::ArrayXd> phi(bins.phi().data() + begin, size + 1);
  const double best = (below - phi).abs().maxCoeff();
  const Eigen::ArrayXd bound = (below.tail(size) - phi.head(size)).max(phi.tail(size) - below.head(size));

  Search search;
  search.slot_of_bin.assign(bins.count(), -1);
  std::size_t rank = 0;
  for (std::size_t b = begin; b < end; ++b) {
    const auto samples = static_cast<std::size_t>(count[b]);
    if (samples > 0 && bound[static_cast<Eigen::Index>(b - begin)] >= best - kSlack) {
      search.slot_of_bin[b] = static_cast<std::int32_t>(search.samples);
      search.candidates.push_back({search.samples, samples, rank});
      search.samples += samples;
    }
    rank += samples;
  }
  return search;
}

// Calls visit(i, bin of sample i) for all samples. Bins are computed by the block, which is vectorised, and twice in
// all rather than stored: memory of n indices costs more.
template <class SampleAt, class Visit>
void visit_bins(const Bins& bins, std::size_t n, const SampleAt& z_at, const Visit& visit) {
  constexpr std::size_t block = 512;
  std::array<std::int32_t, block> bin;
  for (std::size_t first = 0; first < n; first += block) {
    const std::size_t size = std::min(block, n - first);
    for (std::size_t i = 0; i < size; ++i) bin[i] = bins.index(z_at(first + i));
    for (std::size_t i = 0; i < size; ++i) visit(first + i, static_cast<std::size_t>(bin[i]));
  }
}

template <class SampleAt>
double by_bins(std::size_t n, const SampleAt& z_at) {
  HEADSCOPE_CHECK(n <= std::numeric_limits<std::int32_t>::max(), "{} samples", n);
  const Bins& bins = bins_for(n);
  std::vector<std::int32_t> count(bins.count());
  visit_bins(bins, n, z_at, [&](std::size_t, std::size_t bin) { ++count[bin]; });
  for (std::size_t i = 0; i < n && count[0] > 0; ++i) {
    if (std::isnan(z_at(i))) return missing;
  }
  Search search = find_candidates(bins, count, n);
  std::vector<double> z(search.samples), phi(search.samples);
  visit_bins(bins, n, z_at, [&](std::size_t i, std::size_t bin) {
    std::int32_t& slot = search.slot_of_bin[bin];
    if (slot >= 0) z[static_cast<std::size_t>(slot++)] = z_at(i);
  });
  for (const Candidate& bin : search.candidates) std::ranges::sort(std::span(z).subspan(bin.first, bin.count));
  normal_cdf(z, phi);
  double largest = 0;
  for (const Candidate& bin : search.candidates) {
    largest = std::max(largest, deviation_at(std::span(phi).subspan(bin.first, bin.count), bin.rank, n));
  }
  return largest;
}

}  // namespace

double ks_statistic(std::span<const double> x, double mean, double sd) {
  const auto z_at = [=](std::size_t i) { return (x[i] - mean) / sd; };
  if (x.empty()) return missing;
  if (x.size() > kSortAll) return by_bins(x.size(), z_at);
  std::vector<double> z(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) z[i] = z_at(i);
  return by_sorting(std::move(z));
}

// P(D_n >= x), by the scheme of Simard and L'Ecuyer (2011, J. Stat. Software 39(11)) with the limits that scipy uses.
// With t = n x:
//   t <= 1/2                      1
//   t <= 1                        1 - n!/n^n (2t - 1)^n                        (Ruben and Gambino)
//   t >= n - 1                    2 (1 - x)^n                                  (Ruben and Gambino)
//   x >= 1/2, or far in the tail  2 P(D_n^+ >= x), Smirnov's sum
//   small n, or small x           1 - Durbin's matrix                          (exact)
//   else                          1 - Pelz and Good's expansion
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

namespace {

// Coefficients from that of 1 to that of x^4.
double quartic(const std::array<double, 5>& coefficients, double x) {
  double value = 0;
  for (std::size_t i = coefficients.size(); i-- > 0;) value = value * x + coefficients[i];
  return value;
}

// Stephens (1974): the distribution of d times this hardly depends on n.
double stephens_factor(double n) {
  return std::sqrt(n) - 0.01 + 0.85 / std::sqrt(n);
}

double dallal_wilkinson(double d, double n) {
  const double shifted = n + 2.78019;
  return std::exp(-7.01256 * d * d * shifted + 2.99587 * d * std::sqrt(shifted) - 0.122119 + 0.974598 / std::sqrt(n) +
                  1.67997 / n);
}

}  // namespace

double lilliefors_survival(double d, std::int64_t n) {
  constexpr double most = 100;  // samples in the tables of Dallal and Wilkinson
  if (std::isnan(d) || n < 5) return missing;
  const auto size = static_cast<double>(n);
  const double modified = d * stephens_factor(size);
  const double upper =
      size <= most ? dallal_wilkinson(d, size) : dallal_wilkinson(modified / stephens_factor(most), most);
  if (upper <= 0.1) return upper;
  if (modified <= 0.302) return 1;
  const double p = modified <= 0.5   ? quartic({2.76773, -19.828315, 80.709644, -138.55152, 81.218052}, modified)
                   : modified <= 0.9 ? quartic({-4.901232, 40.662806, -97.490286, 94.029866, -32.355711}, modified)
                                     : quartic({6.198765, -19.558097, 23.186922, -12.234627, 2.423045}, modified);
  return std::clamp(p, 0.0, 1.0);
}

}  // namespace headscope
