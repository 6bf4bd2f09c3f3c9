// Eight floats in a register, for loops that a compiler does not vectorise by itself.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace headscope {

using Vector = float __attribute__((vector_size(32)));
using VectorBits = std::int32_t __attribute__((vector_size(32)));
constexpr std::int64_t vector_width = 8;

inline Vector load(const float* from) {
  Vector values;
  std::memcpy(&values, from, sizeof values);
  return values;
}
inline void store(float* to, Vector values) {
  std::memcpy(to, &values, sizeof values);
}

inline float sum_of(Vector a) {
  return ((a[0] + a[4]) + (a[1] + a[5])) + ((a[2] + a[6]) + (a[3] + a[7]));
}
inline Vector larger_of(Vector a, Vector b) {
  return a > b ? a : b;
}
inline float largest_of(Vector a) {
  float largest = a[0];
  for (std::int64_t lane = 1; lane < vector_width; ++lane) largest = a[lane] > largest ? a[lane] : largest;
  return largest;
}

// e^x for -87 <= x <= 88, to two units in the last place.
inline Vector exp_bounded(Vector x) {
  constexpr float shift = 12582912.0F;  // 1.5·2^23: adding it leaves a whole number in the low bits
  const Vector shifted = x * 1.44269504F + shift;
  const Vector whole = shifted - shift;
  const Vector f = (x - whole * 0.693145752F) - whole * 1.42860677e-6F;  // ln 2 in two parts
  Vector p = f * (1.0F / 5040) + 1.0F / 720;
  p = p * f + 1.0F / 120;
  p = p * f + 1.0F / 24;
  p = p * f + 1.0F / 6;
  p = p * f + 0.5F;
  p = p * f + 1.0F;
  p = p * f + 1.0F;
  return p * std::bit_cast<Vector>((std::bit_cast<VectorBits>(shifted) + 127) << 23);
}

// e^x for x <= 0. Below -87: 1e-38.
inline Vector exp_nonpositive(Vector x) {
  return exp_bounded(x < -87.0F ? Vector{} - 87.0F : x);
}

}  // namespace headscope
