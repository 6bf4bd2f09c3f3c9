#include "heads/baseline.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

#include "core/random.h"
#include "stats/gaussian_draws.h"
#include "stats/spectrum.h"

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
  if (metric == "induction" || metric == "previous_random") {  // of the second half of its sequences
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
      const double x = draw_normal(generator);
      largest = std::max(largest, std::fabs(x));
      squares += x * x;
      fourths += x * x * x * x;
    }
    sum += metric == "k_axis" ? largest / std::sqrt(squares) : squares * squares / fourths;
  }
  return sum / directions;
}

// The mean of f(λ) over the eigenvalues of a Gram matrix of Gaussian vectors, c = dimensions / vectors <= 1: the law of
// Marchenko and Pastur, with λ = 1 + c + 2 √c cos θ.
template <class F>
double mean_over_eigenvalues(double c, const F& f) {
  constexpr int places = 2000;
  double sum = 0;
  for (int i = 0; i < places; ++i) {
    const double angle = std::numbers::pi * (i + 0.5) / places, sine = std::sin(angle);
    const double eigenvalue = 1 + c + 2 * std::sqrt(c) * std::cos(angle);
    sum += 2 * sine * sine / eigenvalue * f(eigenvalue);
  }
  return sum / places;
}

// Ranks of n Gaussian keys of d dimensions: below d, since n is finite.
std::optional<double> rank_of_gaussian_keys(std::string_view metric, double n, double d) {
  const double rank = std::min(n, d), c = rank / std::max(n, d);
  const double mean_root = mean_over_eigenvalues(c, [](double x) { return std::sqrt(x); });
  if (metric == "k_pr") return rank * mean_root * mean_root;
  if (metric == "k_pr_eig") return rank / (1 + c);
  if (metric == "k_stable_rank") return rank / ((1 + std::sqrt(c)) * (1 + std::sqrt(c)));
  if (metric != "k_erank") return std::nullopt;
  const double spread = mean_over_eigenvalues(c, [](double x) { return std::sqrt(x) * std::log(x) / 2; });
  return rank * mean_root * std::exp(-spread / mean_root);
}

// Of the dimension with the most energy among n Gaussian keys, which is chosen after the fact: its share of the energy,
// or of the keys whose largest component it is. Drawn, the same every time; what is above 1/d falls with √n.
double share_of_top_dimension(std::string_view metric, std::int64_t tokens, std::int64_t d_k) {
  const std::int64_t n = std::min<std::int64_t>(tokens, 4096), rounds = std::max<std::int64_t>(8, 65536 / n);
  NumpyGenerator generator(0);
  double sum = 0;
  for (std::int64_t round = 0; round < rounds; ++round) {
    std::vector<double> energy(static_cast<std::size_t>(d_k)), largest(energy.size());
    for (std::int64_t key = 0; key < n; ++key) {
      std::size_t top = 0;
      double most = -1;
      for (std::size_t d = 0; d < energy.size(); ++d) {
        const double x = draw_normal(generator);
        energy[d] += x * x;
        if (x * x > most) most = x * x, top = d;
      }
      ++largest[top];
    }
    const auto top = static_cast<std::size_t>(std::ranges::max_element(energy) - energy.begin());
    sum += metric == "k_top_energy" ? energy[top] / std::accumulate(energy.begin(), energy.end(), 0.0)
                                    : largest[top] / static_cast<double>(n);
  }
  const double flat = 1 / static_cast<double>(d_k);
  return flat +
         (sum / static_cast<double>(rounds) - flat) * std::sqrt(static_cast<double>(n) / static_cast<double>(tokens));
}

// The participation ratio of QKᵀ where queries and keys are Gaussian and independent: the mean of some draws, the same
// every time. One draw is a mean over d singular values already.
double product_of_gaussians(std::int64_t n, std::int64_t d) {
  const std::int64_t draws = std::max<std::int64_t>(8, 1024 / d);
  NumpyGenerator generator(0);
  double sum = 0;
  for (std::int64_t i = 0; i < draws; ++i) {
    const std::vector<double> of_q = draw_gaussian_gram(n, d, generator), of_k = draw_gaussian_gram(n, d, generator);
    sum += participation_ratio(singular_values_of_product(of_q, of_k, d));
  }
  return sum / static_cast<double>(draws);
}

std::optional<double> of_gaussian_keys(std::string_view metric, const BatchShape& shape) {
  constexpr std::int64_t many = 1'000'000;
  if (metric == "k_cosine") return 0;
  if (shape.d_k < 1) return std::nullopt;
  const std::int64_t tokens = shape.tokens > 0 ? shape.tokens : many;
  if (metric == "k_top_energy" || metric == "k_top_share") return share_of_top_dimension(metric, tokens, shape.d_k);
  if (metric == "k_axis" || metric == "k_pr_vector") return mean_over_directions(metric, shape.d_k);
  if (metric == "qk_pr") return product_of_gaussians(tokens, shape.d_k);
  // Their mean takes one of n vectors away.
  const std::int64_t free = metric == "k_pr_centred" ? std::max<std::int64_t>(1, tokens - 1) : tokens;
  if (metric == "k_pr_centred") metric = "k_pr";
  return rank_of_gaussian_keys(metric, static_cast<double>(free), static_cast<double>(shape.d_k));
}

// Gaussian vectors are Gaussian after a rotation and before a gain.
std::string_view same_for_gaussian_keys(std::string_view metric) {
  if (metric == "k_pr_rotated" || metric == "k_pr_before_gain") return "k_pr";
  return metric == "qk_pr_rotated" ? "qk_pr" : metric;
}

}  // namespace

std::optional<Baseline> baseline_of(std::string_view given, const BatchShape& shape) {
  const std::string_view metric = same_for_gaussian_keys(given);
  if (const auto value = of_uniform_attention(metric, shape.seq_len)) return Baseline{*value, {"uniform", "attention"}};
  if (const auto value = of_gaussian_keys(metric, shape)) return Baseline{*value, {"Gaussian", "keys"}};
  return std::nullopt;
}

std::optional<Baseline> Baselines::of(std::string_view metric, const BatchShape& shape) {
  const std::pair key(std::string(same_for_gaussian_keys(metric)), shape);
  const auto known = known_.find(key);
  return known != known_.end() ? known->second : known_.emplace(key, baseline_of(metric, shape)).first->second;
}

}  // namespace headscope
