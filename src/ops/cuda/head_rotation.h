// QK-Norm and RoPE of queries and keys on a GPU, straight from the packed product: one pass each way.
#pragma once

#include <cstdint>

#include "ops/cuda/element_type.h"

namespace headscope::cuda {

// qkv: [tokens, heads + 2·kv_heads, d], contiguous, aligned to 16 bytes, fewer than 2^31 vectors. Sequences are of t
// tokens.
struct HeadRotationShape {
  std::int64_t tokens = 0, t = 1;
  int heads = 0, kv_heads = 0;
  int copies = 1;  // of keys and values: 1, or heads / kv_heads
  int d = 0;
  float eps = 0;
  ElementType type = ElementType::f32;
};

// d a multiple of 8, at most 256.
bool supports_head_rotation(int d);

// table: float32 [>= t, d/2, 2], cosine and sine of each pair of neighbours. q_gain, k_gain: float32 [d], or both null:
// no norm. q: [tokens, heads, d], k and v (null: not wanted): [tokens, kv_heads·copies, d]. plain (null: not wanted):
// [tokens, heads + kv_heads, d], queries and keys before RoPE.
void rotate_heads(const void* qkv, const float* q_gain, const float* k_gain, const float* table, void* q, void* k,
                  void* v, void* plain, const HeadRotationShape& shape, CUstream_st* stream);

// The number of partial sums of each gain's gradient that the backward pass writes.
std::int64_t head_rotation_partials(const HeadRotationShape& shape);

// dq, dk, dv: [tokens, heads or kv_heads·copies, d], contiguous. d_qkv: as qkv. gain_partials: float32 [2, partials,
// d], of the queries' gain and of the keys', to be added up by the caller; null without gains. Each has a fixed set of
// rows.
void rotate_heads_backward(const void* qkv, const float* q_gain, const float* k_gain, const float* table,
                           const void* dq, const void* dk, const void* dv, void* d_qkv, float* gain_partials,
                           const HeadRotationShape& shape, CUstream_st* stream);

}  // namespace headscope::cuda
