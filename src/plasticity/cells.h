// Plasticity of the cells (query bucket, key bucket) of a head (PLASTICITY steps 10 to 12).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/missing.h"
#include "plasticity/keys.h"
#include "plasticity/queries.h"

namespace headscope {

// The numbers of a cell.
struct CellResult {
  std::int64_t q_bucket = 0, k_bucket = 0, n_pairs = 0, n_examples = 0;
  double plasticity = missing;   // mean over pairs
  double se_pairs = missing;     // standard error of that mean
  double se_examples = missing;  // bootstrap over examples; estimate_uncertainty() fills it in
  std::int64_t n_queries = 0;    // of the query bucket, in use
};

// The plasticities of a cell's pairs that fall into one example.
struct ExampleSum {
  std::uint32_t example = 0;  // index into the examples of the key bucket
  double sum = 0;
  std::int64_t count = 0;
};

// A cell with what its uncertainty is estimated from.
struct Cell : CellResult {
  std::size_t key_bucket_index = 0;  // place in Keys::buckets
  double weight = 1;                 // in the head's mean
  std::vector<ExampleSum> examples;

  [[nodiscard]] bool empty() const { return n_pairs == 0; }
};

// A cell that is filled in, with its pairs and the model of their score differences.
struct CellPairs {
  const Cell& cell;
  const QueryBucket& queries;
  const std::vector<KeyPair>& pairs;
  const RowMajorMatrix& captured_pd;    // key differences as captured; only with an observer
  const RowMajorMatrix& delta_pd;       // the same in the basis of the queries
  const Eigen::VectorXd& mean_p;        // of q·Δ under the model
  const Eigen::VectorXd& variance_p;    // as it was used: positive, or NaN for a pair that is left out
  const Eigen::VectorXd& plasticity_p;  // NaN for a pair that is left out
};
using CellObserver = std::function<void(const CellPairs&)>;

// All cells of a head in ascending order. The generator is default_rng(seed + 10007 layer + 379 q_head). `vectors` are
// those of the keys that the groups count. The observer sees every cell that is not empty.
std::vector<Cell> evaluate_cells(const Queries& queries, const QueryModel& model, const CapturedVectors& vectors,
                                 const KeyGroups& keys, const PlasticityOptions& options, NumpyGenerator generator,
                                 StageTimes& times, const CellObserver& observe = {});

// The head's value: weighted mean over non-empty cells; missing when there is none. Not that of its uncertainty, whose
// sum can be rounded in another way.
double weighted_mean(const std::vector<Cell>& cells);

}  // namespace headscope
