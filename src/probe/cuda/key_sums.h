// Sums over the keys of each head on a GPU, in float64, of what each key is measured by: in float64, too, or where keys
// are bfloat16 in float32. No atomics: results do not depend on timing.
#pragma once

#include <cstdint>

#include "ops/cuda/element_type.h"
#include "probe/cuda/head_strides.h"

namespace headscope::cuda {

// k: [n / t, t, heads, d], sequences of t tokens.
struct KeyShape {
  std::int64_t n = 0, t = 0;
  int heads = 0, d = 0;
  HeadStrides strides;
  bool pairs = false;  // pointer, strides and d are multiples of two elements, which threads then read at once
  bool packs = false;  // pointer and strides are multiples of 16 bytes, d of eight elements
  bool flat = false;   // sequences follow each other: token n lies n strides from the first
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
// Tokens are cut into so many chunks, each of which leaves so many values for each head.
std::int64_t key_chunks(const KeyShape& shape);
int key_partials(int d);
std::int64_t norm_chunks(const KeyShape& shape);

// partials: float64 [chunks, heads, key_partials(d)], scratch; sums: float64 [heads, key_values(d)], and behind it KᵀK,
// [heads, d, d].
void key_sums(const void* k, const KeyShape& shape, double* partials, double* sums, CUstream_st* stream);

// sums: float64 [norm_chunks, heads], to be added up over the chunks by the caller: Σ ‖x‖ of vectors in the shape of
// keys.
void norm_sums(const void* x, const KeyShape& shape, double* sums, CUstream_st* stream);

}  // namespace headscope::cuda
