// Statistics of causal attention without its T×T matrix: scores exist for a tile of rows at a time.
#pragma once

#include "ops/attention.h"
#include "probe/head_values.h"

namespace headscope {

// q_bthd, k_bthd: after RoPE, of any float type; query head h reads key head h·key_heads/heads. For each query head:
//   entropy, entropy_norm, max_logit, sink, previous, self, constancy, consistency
// (docs/measurements.md), of the keys that the window leaves and of scores under the cap. The first row of a sequence
// has one key only and does not count in entropy_norm, sink, previous and consistency. NaN where no row is left, and
// for the consistency of one sequence. log_sum_bht: that of HeadVectors (model/decoder.h); undefined: it is computed.
PendingValues begin_attention_statistics(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const Scores& scores,
                                         const at::Tensor& log_sum_bht = {});
inline HeadValues attention_statistics(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const Scores& scores,
                                       const at::Tensor& log_sum_bht = {}) {
  return begin_attention_statistics(q_bthd, k_bthd, scores, log_sum_bht).wait();
}

// The same by tensor operations over tiles, on any device: the definition.
PendingValues begin_attention_statistics_composed(const at::Tensor& q_bthd, const at::Tensor& k_bthd,
                                                  const Scores& scores);
inline HeadValues attention_statistics_composed(const at::Tensor& q_bthd, const at::Tensor& k_bthd,
                                                const Scores& scores) {
  return begin_attention_statistics_composed(q_bthd, k_bthd, scores).wait();
}

// entropy_seed: mean entropy of the rows of softmax(scores) over the first 128 tokens, without mask or window, of
// queries and keys before RoPE, as the source study takes it.
PendingValues begin_seed_entropy(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const Scores& scores);
inline HeadValues seed_entropy(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const Scores& scores) {
  return begin_seed_entropy(q_bthd, k_bthd, scores).wait();
}

// induction: on sequences whose second half repeats the first (of t/2 tokens each), the mean attention of the tokens of
// the second half to the token that followed their first occurrence; previous_random: to the token before them. q_bthd,
// k_bthd: after RoPE.
HeadValues induction_score(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const Scores& scores);

}  // namespace headscope
