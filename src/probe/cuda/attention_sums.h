// Sums over the rows of causal attention on a GPU, without the T×T matrix. No atomics: results do not depend on timing.
#pragma once

#include <cstdint>

#include "ops/cuda/element_type.h"
#include "probe/cuda/head_strides.h"

namespace headscope::cuda {

// q: [b, t, heads, d], k: [b, t, key_heads, d]; b, t and d at least 1. Pointers and strides are multiples of 16 bytes.
struct AttentionShape {
  std::int64_t b = 0, t = 0;
  int heads = 0, key_heads = 0, d = 0;
  float scale = 1;  // above 0
  HeadStrides q, k;
  ElementType type = ElementType::f32;
};

// Memory on the device; its content before the call does not matter.
struct AttentionScratch {
  float* received = nullptr;  // [tiles, b, heads, t]: attention that a key gets from a tile of rows
  float* rows = nullptr;      // [2, heads, tiles, t]: what a tile of columns adds to Σ p·log2 p of a row, summed over
                              // sequences, and to that of the row's mean over sequences
  float* pairs = nullptr;     // [pairs of tiles, heads, 3]: Σ p of the own token and of the one before, largest score
  float* first = nullptr;     // [b, heads]: p of the first token to itself
};

// What is summed, in the order of HeadSums (probe/attention_rows.h).
constexpr int attention_values = 8;

bool supports_attention_sums(int d, ElementType type);
// Rows and columns are cut into so many tiles, of which as many pairs are on or below the diagonal.
std::int64_t attention_tiles(std::int64_t t);
inline std::int64_t attention_pairs(std::int64_t t) {
  return attention_tiles(t) * (attention_tiles(t) + 1) / 2;
}

// log_sum: float32 [b, heads, t], log Σ exp(score) of each row.
void attention_log_sums(const void* q, const void* k, const AttentionShape& shape, float* log_sum, CUstream_st* stream);

// sums: float64 [tiles, heads, attention_values], to be added up (max_logit: the largest taken) over the tiles by the
// caller.
void attention_sums(const void* q, const void* k, const float* log_sum, const AttentionShape& shape,
                    const AttentionScratch& scratch, double* sums, CUstream_st* stream);

// Of the first min(t, seed_rows) tokens without a mask. sums: float64 [heads, b], the sum of the entropies of the rows.
constexpr int seed_rows = 128;
void seed_entropies(const void* q, const void* k, const AttentionShape& shape, double* sums, CUstream_st* stream);

}  // namespace headscope::cuda
