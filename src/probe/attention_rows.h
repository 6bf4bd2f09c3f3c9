// Attention of one head on a CPU, a block of rows at a time: scores, softmax and sums over rows.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "ops/attention.h"

namespace headscope {

// Sums over the rows of all sequences of one query head.
struct HeadSums {
  double entropy = 0;
  // Without the first row of each sequence. entropy_norm: the entropy of a row over ln n, n the keys that it sees.
  double entropy_norm = 0, sink = 0, previous = 0, divergence = 0;
  double self = 0;
  double max_logit = 0;        // the largest
  double profile_entropy = 0;  // over sequences: entropy of the mean row
};

// Adds the sums of further rows. max_logit becomes the larger of the two, or NaN if one is.
void add(HeadSums& total, const HeadSums& part);

// q_bthd, k_bthd: float32 on the CPU, contiguous. `divergence` is the Jensen-Shannon divergence of a row's attention
// between sequences over the largest it can be, min(ln b, ln n).
std::vector<HeadSums> causal_row_sums(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const Scores& scores);

// The mean entropy of all rows without a mask, for each query head.
std::vector<double> unmasked_entropies(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const Scores& scores);

}  // namespace headscope
