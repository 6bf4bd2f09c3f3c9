// What attention does with queries, keys and values: rotary position embedding, and causal grouped-query attention.
#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace headscope {

// Rotary position embedding (RoPE): a pair of a head vector's dimensions at position t is turned by the angle
// t · frequency of the pair. The table holds magnitude · e^{i·angle}, complex [positions, pairs] of `type`. Angles are
// computed in the type of the frequencies; cos and sin in float64.
at::Tensor rotary_table(std::int64_t positions, const at::Tensor& frequencies, double magnitude, at::ScalarType type);

// With the frequencies base^(-2i/d), in float64.
at::Tensor rotary_frequencies(std::int64_t d, double base);
at::Tensor rotary_table(std::int64_t positions, std::int64_t d, double base, at::ScalarType type = at::kFloat);

// x_bthd: any float type, its type is returned; table: complex [>= t, pairs]. Pairs are neighbours (2i, 2i + 1), or
// (i, i + pairs) with `halves`. Dimensions from 2·pairs on stay.
at::Tensor rotate(const at::Tensor& x_bthd, const at::Tensor& table, bool halves = false);

// What a score may be and whom it counts for: it is scale · q·k, soft-capped to cap·tanh(score/cap) where cap is not 0;
// a query sees the last `window` keys up to its own position, all of them where window is 0.
struct Scores {
  double scale = 1;
  std::int64_t window = 0;
  double cap = 0;
};

// softmax(scores) · v. Query head h reads key head h / (query heads / key heads). All [b, t, heads, d]; returns
// [b, t, query heads, d].
at::Tensor causal_attention(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const at::Tensor& v_bthd,
                            const Scores& scores);

// The rows of softmax(scores) for the queries from `first` on: [b, query heads, count, t] in the type of q.
at::Tensor attention_probabilities(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const Scores& scores,
                                   std::int64_t first, std::int64_t count);

// The two passes of causal attention themselves, all keys seen and no cap: for code that takes its gradients itself.
enum class AttentionKernels {
  cudnn,     // the fastest on Hopper; sums of its backward pass have no fixed order
  flash,     // in a fixed order on demand
  composed,  // the matrix of all scores: any device and type
};
struct Attended {
  at::Tensor mixed_bthd;
  at::Tensor log_sum_bht;  // log Σ exp(score) of each row, float32 or float64
  AttentionKernels kernels = AttentionKernels::composed;
  bool deterministic = false;
  std::vector<at::Tensor> of_kernels = {};  // what their backward pass wants
};
// Whether attention is faster with keys and values for every query head than with those of groups: cuDNN adds up the
// gradients of a group in kernels of its own, whose time heads of 64 dimensions do not make up for (H200: 42 of 437 µs
// with 8 heads in 4 groups, 16,384 tokens); flash attention has no groups.
bool wants_repeated_keys(std::int64_t d, at::Device device, at::ScalarType type, bool deterministic);

// By the fastest kernels for these queries and keys; of fixed order with `deterministic`.
Attended attention_forward(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const at::Tensor& v_bthd, double scale,
                           bool deterministic);

struct AttentionGradients {
  at::Tensor dq_bthd, dk_bthd, dv_bthd;
};
AttentionGradients attention_backward(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const at::Tensor& v_bthd,
                                      const Attended& attended, const at::Tensor& d_mixed_bthd, double scale);

}  // namespace headscope
