// Loads and stores of several elements at a time, computed in float32, and sums over a warp.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace headscope::cuda {

__device__ inline float wide(float value) { return value; }
__device__ inline float wide(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ inline float wide(__half value) { return __half2float(value); }
__device__ inline void store(float* place, float value) { *place = value; }
__device__ inline void store(__nv_bfloat16* place, float value) { *place = __float2bfloat16(value); }
__device__ inline void store(__half* place, float value) { *place = __float2half(value); }

// As it will be read again.
template <class T>
__device__ inline float rounded(float value) {
  T place;
  store(&place, value);
  return wide(place);
}

constexpr int warp_width = 32;
constexpr unsigned whole_warp = 0xffffffffu;

__device__ inline float sum_over_warp(float value) {
#pragma unroll
  for (int offset = warp_width / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(whole_warp, value, offset);
  return value;
}

template <class T, int n>
struct alignas(sizeof(T) * n) Pack {
  static constexpr int size = n;
  T values[n];
};

}  // namespace headscope::cuda
