// Sums over the keys of each head on a GPU, in float64.
#pragma once

#include <cstdint>

#include "ops/cuda/element_type.h"

namespace headscope::cuda {

// k: [n, heads, d], contiguous; sequences of t tokens.
struct KeyShape {
  std::int64_t n = 0, t = 0;
  int heads = 0, d = 0;
  ElementType type = ElementType::f32;
};

// What is summed over the keys of a head: these, then three vectors of d. `alive` keys are those with a norm above 0.
// Norms and components are taken less those of the head's first key (its norm, its first component): the deviation of
// equal values is then exactly 0.
enum KeySum {
  norm_shift,  // the first norm and component themselves, not sums
  component_shift,
  norms,
  norm_squares,
  components,
  component_squares,
  token0_norms,
  tops,  // the largest |component| of each key
  largest_top,
  axes,    // of alive keys: largest |component| over norm
  ratios,  // of alive keys: (Σ k²)² / Σ k⁴
  alive,
  key_scalars
};
enum KeyVector {
  energies,  // Σ k²
  units,     // of alive keys: k / norm
  on_top,    // alive keys whose largest |component| is this one
  key_vectors
};

constexpr int key_values(int d) {
  return key_scalars + key_vectors * d;
}

bool supports_key_sums(int d);
// Tokens are cut into so many chunks.
std::int64_t key_chunks(const KeyShape& shape);

// partials: float64 [chunks, heads, key_values(d)], scratch; sums: float64 [heads, key_values(d)]. No atomics.
void key_sums(const void* k, const KeyShape& shape, double* partials, double* sums, CUstream_st* stream);

}  // namespace headscope::cuda
