// Sums over the rows of causal attention on a GPU, without the T×T matrix.
#pragma once

#include <cstdint>

#include "ops/cuda/element_type.h"

namespace headscope::cuda {

// q: [b, t, heads, d], k: [b, t, key_heads, d], contiguous, aligned to 16 bytes; b, t and d at least 1.
struct AttentionShape {
  std::int64_t b = 0, t = 0;
  int heads = 0, key_heads = 0, d = 0;
  float scale = 1;
  ElementType type = ElementType::f32;
};

// Memory on the device; its content before the call does not matter.
struct AttentionScratch {
  float* softmax = nullptr;       // [b, heads, t, 2]: a row's largest score m, and 1 / Σ exp(s - m)
  double* entropy = nullptr;      // [b, heads, t]
  float* weights = nullptr;       // [3, b, heads, t]: attention to the first token, the one before and the own
  float* received = nullptr;      // [tiles, b, heads, t]: attention that a key gets from a tile of rows
  float* mean_entropy = nullptr;  // [heads, tiles, t]: what a tile of columns adds to the entropy of the mean row
};

// What is summed, in the order of HeadSums (probe/attention_rows.h).
constexpr int attention_values = 8;

bool supports_attention_sums(int d);
// Rows and columns are cut into so many tiles.
std::int64_t attention_tiles(std::int64_t t);

// sums: float64 [tiles, heads, attention_values], to be added up (max_logit: the largest taken) over the tiles by the
// caller. No atomics: the result does not depend on timing.
void attention_sums(const void* q, const void* k, const AttentionShape& shape, const AttentionScratch& scratch,
                    double* sums, CUstream_st* stream);

}  // namespace headscope::cuda
