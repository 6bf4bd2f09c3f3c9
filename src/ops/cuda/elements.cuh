// Loads and stores of several elements at a time, computed in float32.
#pragma once

#include <cuda_bf16.h>

namespace headscope::cuda {

__device__ inline float wide(float value) { return value; }
__device__ inline float wide(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ inline void store(float* place, float value) { *place = value; }
__device__ inline void store(__nv_bfloat16* place, float value) { *place = __float2bfloat16(value); }

template <class T, int n>
struct alignas(sizeof(T) * n) Pack {
  static constexpr int size = n;
  T values[n];
};

}  // namespace headscope::cuda
