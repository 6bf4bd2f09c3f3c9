#include "heads/baseline.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/random.h"

namespace headscope {
namespace {

// 1 + 1/2 + ... + 1/n
double harmonic(std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = n; i > 0; --i) sum += 1 / static_cast<double>(i);
  return sum;
}

// Row i of uniform causal attention has the entropy ln(i + 1).
double mean_entropy(std::int64_t rows) {
  return std::lgamma(static_cast<double>(rows) + 1) / static_cast<double>(rows);
}

// 1 - I / H(mean row), I = H(mean row) - mean entropy.
double constancy(std::int64_t rows) {
  double of_mean_row = 0, tail = 0;  // key j has 1 / (i + 1) of every row i from j on
  for (std::int64_t j = rows - 1; j >= 0; --j) {
    tail += 1 / static_cast<double>(j + 1);
    const double share = tail / static_cast<double>(rows);
    of_mean_row -= share * std::log(share);
  }
  return mean_entropy(rows) / of_mean_row;
}

std::optional<double> of_uniform_attention(std::string_view metric, std::int64_t rows) {
  const auto n = static_cast<double>(rows);
  if (metric == "entropy_norm" || metric == "consistency") return 1;
  if (metric == "max_logit") return 0;
  if (rows < 2) return std::nullopt;
  if (metric == "entropy") return mean_entropy(rows);
  if (metric == "entropy_seed") return std::log(std::min(n, 128.0));
  if (metric == "sink" || metric == "previous") return (harmonic(rows) - 1) / (n - 1);
  if (metric == "self") return harmonic(rows) / n;
  if (metric == "constancy") return constancy(rows);
  if (metric == "induction") {
    const std::int64_t period = std::min<std::int64_t>(64, rows / 2);
    return (harmonic(2 * period) - harmonic(period)) / static_cast<double>(period);
  }
  return std::nullopt;
}

// The mean over random directions: 4096 of them, the same every time; its error is below one percent.
double mean_over_directions(std::string_view metric, std::int64_t d_k) {
  constexpr int directions = 4096;
  NumpyGenerator generator(0);
  double sum = 0;
  for (int i = 0; i < directions; ++i) {
    double largest = 0, squares = 0, fourths = 0;
    for (std::int64_t d = 0; d < d_k; ++d) {
      const double x =
          std::sqrt(-2 * std::log1p(-generator.uniform())) * std::cos(2 * std::numbers::pi * generator.uniform());
      largest = std::max(largest, std::fabs(x));
      squares += x * x;
      fourths += x * x * x * x;
    }
    sum += metric == "k_axis" ? largest / std::sqrt(squares) : squares * squares / fourths;
  }
  return sum / directions;
}

std::optional<double> of_gaussian_keys(std::string_view metric, std::int64_t d_k) {
  if (metric == "k_cosine") return 0;
  if (d_k < 1) return std::nullopt;
  const auto d = static_cast<double>(d_k);
  if (metric == "k_pr" || metric == "k_erank" || metric == "k_pr_eig" || metric == "k_stable_rank") return d;
  if (metric == "k_top_energy" || metric == "k_top_share") return 1 / d;
  if (metric == "k_axis" || metric == "k_pr_vector") return mean_over_directions(metric, d_k);
  return std::nullopt;
}

}  // namespace

std::optional<Baseline> baseline_of(std::string_view metric, const BatchShape& shape) {
  if (const auto value = of_uniform_attention(metric, shape.seq_len)) return Baseline{*value, {"uniform", "attention"}};
  if (const auto value = of_gaussian_keys(metric, shape.d_k)) return Baseline{*value, {"Gaussian", "keys"}};
  return std::nullopt;
}

}  // namespace headscope
