// How far a plasticity can be trusted: standard errors over pairs and by bootstrap over examples, and the plasticity of
// near and far cells. Beyond the source document.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/missing.h"
#include "plasticity/cells.h"

namespace headscope {

struct Estimate {
  double value = missing;
  double se_pairs = missing;     // pairs as independent draws: the error of sampling pairs
  double se_examples = missing;  // bootstrap over examples: texts vary, and pairs of one text go together

  // 95 % interval: normal, with the error over examples where it is known.
  [[nodiscard]] double standard_error() const;
  [[nodiscard]] double low() const;
  [[nodiscard]] double high() const;
};

struct HeadUncertainty {
  Estimate overall;
  Estimate first_20, last_20;  // the nearest and the farthest cells, each at least a fifth of the non-empty ones
  Estimate drop;               // first_20 - last_20
  std::int64_t n_examples = 0;
  std::uint64_t examples_hash = 0;       // of the set of example ids: equal sets can be compared pair by pair
  std::vector<double> cell_se_examples;  // of each cell
  Eigen::VectorXd overall_replicates;    // of overall; for paired comparisons of heads and runs
};

// Poisson(1) weights of the examples, one row a replicate: a function of (seed, example id, replicate) alone, so every
// head of a run, and every run on the same texts, resamples the same examples.
double bootstrap_weight(std::uint64_t seed, std::int64_t example_id, std::uint64_t replicate);

// The fitted query model is held fixed; what varies is which texts the keys come from.
HeadUncertainty estimate_uncertainty(const std::vector<Cell>& cells, const Keys& keys, std::uint64_t seed,
                                     std::int64_t replicates);

// Standard deviation (n - 1) of the values that are not NaN; missing for fewer than two.
double sample_deviation(const Eigen::ArrayXd& values);

// The head's value: weighted mean over non-empty cells; missing when there is none.
double weighted_mean(const std::vector<Cell>& cells);

}  // namespace headscope
