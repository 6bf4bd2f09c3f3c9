// How much each captured query moves the plasticity that the Gaussian model gives a head: its influence, in the sense
// of the infinitesimal jackknife. What a text moves is the sum over its queries.
//   A pair has the value f(z) = 4 Phi(z) (1 - Phi(z)), z = m / sqrt(v), so its differential is
//     df = f'(z) (dm / sqrt(v) - z dv / (2 v)),   f'(z) = 4 phi(z) (1 - 2 Phi(z)).
//   seed: a query x of the bucket, of n, has y = x - mean in the semantic components, and
//     dm = Δ·y / n,   dv = ((Δ·y)² - mean of it) / n.
//   The other components (seed: the first; diagonal: all) come from the lines that all N queries give. With the
//   residual r at position t, and the bucket's mean position τ,
//     dm = Σ Δ_c r_c (1/N + (t - tbar)(τ - tbar) / Σ(t - tbar)²),   dv = Σ Δ_c² (r_c² - σ_c²) / N.
// Summed over pairs, the terms of a bucket are one linear and one quadratic form of y. The rotation and the cells'
// weights are held fixed.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "plasticity/cells.h"

namespace headscope {

// A number for each text of a head, 0 at first.
class TextSums {
 public:
  double& operator[](std::int64_t example_id);
  // Infinitesimal jackknife over texts: Σ of the squared influences times T / (T - 1). Missing for fewer than two
  // texts.
  [[nodiscard]] double standard_error() const;
  [[nodiscard]] const std::vector<std::int64_t>& examples() const { return examples_; }  // in order of first use
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

 private:
  std::unordered_map<std::int64_t, std::size_t> place_;
  std::vector<std::int64_t> examples_;
  std::vector<double> values_;
};

class QueryInfluence {
 public:
  QueryInfluence(const Queries& queries, const QueryModel& model, Variant variant);

  // Cells come in the order of evaluate_cells.
  void add(const CellPairs& cell);

  // Of the queries of each text on the weighted mean over the cells added; nothing where there was none. `captured` are
  // those that the queries come from.
  [[nodiscard]] TextSums finish(const CapturedVectors& captured);

 private:
  void finish_bucket();

  const Queries& queries_;
  const QueryModel& model_;
  const bool semantic_;  // the semantic components have forms of their own in each bucket
  double mean_position_ = 0;
  double weight_ = 0;  // of the cells added
  Eigen::VectorXd influence_n_;
  // Of the components with lines: coefficients of r / N, of r (t - tbar) / Σ(t - tbar)², and of (r² - σ²) / N.
  Eigen::VectorXd line_c_, slope_c_, square_c_;
  // Of the bucket at hand.
  const QueryBucket* bucket_ = nullptr;
  Eigen::VectorXd linear_s_;
  Eigen::MatrixXd quadratic_ss_;  // lower triangle
};

}  // namespace headscope
