// What else the rank of keys could mean (docs/measurements.md, "Other ranks"), and how far scores spread: both from the
// same sums over tokens.
#pragma once

#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "model/decoder.h"
#include "probe/head_values.h"

namespace headscope {

// Names of k_pr, of measures of the group other_rank, and score_std.
using RankMeasures = std::set<std::string_view>;

// Sums over tokens that the measures of a layer are made of, float64: Gram matrices of keys and queries before and
// after RoPE, and sums of keys. For each of s sets of tokens. Undefined where no measure needs them.
struct RankSums {
  at::Tensor k_shdd, k_rotated_shdd, q_shdd, q_rotated_shdd;
  at::Tensor k_sum_shd, k_rotated_sum_shd;
  double tokens = 0;           // of each set
  double scale = 1;            // the factor of the scores
  std::vector<double> k_gain;  // that QK-Norm multiplied the keys by, of one head or of all heads; empty: none
};

// A set for each sequence. On the device of the vectors.
RankSums rank_sums(const HeadVectors& vectors, const RankMeasures& measures, const std::vector<double>& k_gain);

// Of the sums of each sequence: one set with all tokens; and for each sequence the set of all others, exact to a
// rounding of the sum of all.
RankSums over_all_sequences(const RankSums& by_sequence);
RankSums without_each_sequence(const RankSums& by_sequence);

// By one transfer.
void move_to_cpu(std::vector<RankSums>& layers);

// The measures of ranks, by layer and set: [layer][set]. The sums are on the CPU.
// NaN where a value is not finite, and for k_pr_before_gain where a component of the gain is 0.
//   qk_pr: singular values of QKᵀ with an error of 1e-8 of ‖Q‖·‖K‖ at most, since they come from Gram matrices.
std::vector<std::vector<HeadValues>> rank_values(std::span<const RankSums> layers, const RankMeasures& measures);

// score_std of each query head (docs/measurements.md), float64 on the device of the sums: after RoPE, with the model's
// factor, before a cap, over all keys of the sequence.
at::Tensor score_std(const RankSums& by_sequence);

}  // namespace headscope
