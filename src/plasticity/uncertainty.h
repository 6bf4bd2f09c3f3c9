// Standard errors of a head's plasticity, over pairs and by bootstrap over examples, and the plasticity of its near and
// far cells. The source document does not define these.
#pragma once

#include <Eigen/Core>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/missing.h"
#include "plasticity/influence.h"

namespace headscope {

struct Estimate {
  double value = missing;
  double se_pairs = missing;     // takes pairs as independent draws
  double se_examples = missing;  // bootstrap over examples: pairs of one text are not independent

  // The error over examples where it is known, and the normal 95 % interval with it.
  [[nodiscard]] double standard_error() const { return std::isnan(se_examples) ? se_pairs : se_examples; }
  [[nodiscard]] double low() const { return value - normal_quantile_975 * standard_error(); }
  [[nodiscard]] double high() const { return value + normal_quantile_975 * standard_error(); }
  static constexpr double normal_quantile_975 = 1.959963984540054;
};

struct HeadUncertainty {
  Estimate overall;                // weighted mean over non-empty cells: the head's value
  Estimate first_20, last_20;      // the nearest and the farthest cells, each at least a fifth of the non-empty ones
  Estimate drop;                   // first_20 - last_20
  std::int64_t n_examples = 0;     // texts of the pairs of keys and of the queries
  std::string examples_hash;       // of the set of example ids: heads with equal sets can be compared pair by pair
  std::vector<double> replicates;  // of overall, one for each bootstrap replicate; none when pairs are of one example
};

// The weight of an example in a bootstrap replicate, Poisson(1). It depends on the three arguments alone, so every head
// of a run, and every run on the same texts, resamples the same examples.
double bootstrap_weight(std::uint64_t seed, std::int64_t example_id, std::uint64_t replicate);

// Fills in se_examples of the cells. The bootstrap resamples the texts of the keys; the fitted query model stays. What
// it would be with the queries of the texts drawn enters the replicates of the head's value to first order: with the
// weights w of the same draws, Σ (w - 1) from_queries, where `from_queries` is the influence of each text's queries.
// The errors of cells, first_20, last_20 and drop hold the queries fixed.
HeadUncertainty estimate_uncertainty(std::vector<Cell>& cells, const KeyGroups& keys, std::uint64_t seed,
                                     std::int64_t replicates, const TextSums& from_queries = {});

// Standard deviation (n - 1) of the values that are not NaN; missing for fewer than two.
double sample_deviation(const Eigen::ArrayXd& values);

}  // namespace headscope
