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
// On the device of the vectors. `by_sequence`: otherwise all sequences of the batch count as one.
RankSums rank_sums(const HeadVectors& vectors, const MetricSelection& chosen, bool by_sequence);

// Of one layer; empty without QK-Norm.
std::vector<double> key_gain(const Gains& gains, std::int64_t layer);

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

// Takes the layers one by one, so that the Gram matrices of one are in memory.
class RankJackknife {
 public:
  void add_layer(const RankSums& by_sequence, const std::vector<double>& k_gain, const MetricSelection& chosen);
  [[nodiscard]] RankErrors errors() const;

 private:
  std::map<std::string, std::vector<std::vector<double>>>
      replicates_;  // by measure: [layer][sequence that is left out]
};

// The same by a forward pass in `type`.
RankErrors measure_rank_errors(const Decoder& model, const at::Tensor& tokens_bt, at::ScalarType type,
                               const MetricSelection& chosen);

}  // namespace headscope
