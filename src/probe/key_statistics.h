// Statistics of a layer's keys as vectors: norms, outliers, redundancy; norms of queries. All are after QK-Norm and
// before RoPE.
#pragma once

#include "probe/head_values.h"

namespace headscope {

// k_bthd: keys of any float type. For each key head, over its b·t tokens, in float64 (on a GPU, keys in
// bfloat16 are measured in float32 one by one, to 1e-6, but for KᵀK):
//   k_norm, k_norm_std, k_std, k_token0_norm, k_max_abs_mean, k_max_abs, k_axis, k_pr_vector, k_top_dim, k_top_energy,
//   k_top_share, k_cosine
// (heads/metrics.h says what they mean, docs/measurements.md how they are computed). Keys that are zero have no
// direction and do not count in k_axis, k_pr_vector, k_top_share and k_cosine; NaN where nothing is left.
PendingValues begin_key_statistics(const at::Tensor& k_bthd);
inline HeadValues key_statistics(const at::Tensor& k_bthd) {
  return begin_key_statistics(k_bthd).wait();
}

// The same by tensor operations, on any device: the definition.
PendingValues begin_key_statistics_composed(const at::Tensor& k_bthd);
inline HeadValues key_statistics_composed(const at::Tensor& k_bthd) {
  return begin_key_statistics_composed(k_bthd).wait();
}

// KᵀK of each head's keys K [b·t, d], not centred: [heads, d, d] in float64, on the device of the keys.
at::Tensor key_gram(const at::Tensor& k_bthd);

// Both, of one pass over the keys where a kernel makes both.
struct PendingKeys {
  PendingValues statistics;
  at::Tensor gram_hdd;
};
PendingKeys begin_key_statistics_and_gram(const at::Tensor& k_bthd);

// q_norm of each query head: the mean norm over its tokens, in float64 (on a GPU, each of bfloat16 in float32).
PendingValues begin_query_norms(const at::Tensor& q_bthd);

// From these matrices of any number of heads, on the CPU, the participation ratios and ranks of each head's keys:
//   k_pr, k_erank, k_pr_eig, k_stable_rank
HeadValues spectrum_of_gram(const at::Tensor& gram_hdd);

}  // namespace headscope
