// What else the rank of keys could mean (docs/measurements.md, "Other ranks"), and how far each measure depends on the
// sequences that were drawn.
#pragma once

#include <optional>

#include "model/decoder.h"
#include "probe/head_values.h"

namespace headscope {

// Sums over the tokens of each sequence s that the measures of a layer are made of, float64: Gram matrices of keys and
// queries before and after RoPE, and the sum of the keys. Undefined where no chosen measure needs them.
struct RankSums {
  at::Tensor k_shdd, k_rotated_shdd, q_shdd, q_rotated_shdd;
  at::Tensor k_sum_shd;
  std::int64_t seq_len = 0;
};
// On the device of the vectors.
RankSums rank_sums(const HeadVectors& vectors, const MetricSelection& chosen);
// All sequences as one.
RankSums over_sequences(const RankSums& sums);

// k_pr and the chosen measures of the group other_rank, over all sequences but `left_out` (none: over all). On the CPU.
//   k_gain: the gain of QK-Norm that the keys were multiplied by, of one head or of all heads of the layer; empty:
//   none.
// NaN where a value is not finite, and for k_pr_before_gain where a component of the gain is 0.
//   qk_pr: singular values of QKᵀ with an error of 1e-8 of ‖Q‖·‖K‖ at most, since they come from Gram matrices.
HeadValues rank_values(const RankSums& sums, const std::vector<double>& k_gain, const MetricSelection& chosen,
                       std::optional<std::int64_t> left_out = std::nullopt);

// Jackknife standard errors over the sequences of a batch, by measure: of the mean over layers and heads, and of the
// mean over the heads of each layer. NaN with one sequence.
struct RankErrors {
  std::map<std::string, double> mean;
  std::map<std::string, std::vector<double>> layers;
};
// By a forward pass in `type`. Layers are measured one by one: the Gram matrices of one are in memory.
RankErrors measure_rank_errors(const Decoder& model, const at::Tensor& tokens_bt, at::ScalarType type,
                               const MetricSelection& chosen);

}  // namespace headscope
