// What the kernels of the optimizers share: how a block walks over a chunk, and sums in a fixed order.
#pragma once

#include <cstdint>

#include "ops/cuda/elements.cuh"

namespace headscope::cuda {

constexpr int threads_per_block = 256;
// A thread takes 8 elements at a time: 16 bytes of bfloat16 or float16, two times 16 of float32.
constexpr int at_once = 8;
using Floats = Pack<float, at_once>;
using Bfloats = Pack<__nv_bfloat16, at_once>;
using Halves = Pack<__half, at_once>;

__device__ inline Floats load_floats(const float* place) {
  Floats result;
  *reinterpret_cast<float4*>(&result.values[0]) = reinterpret_cast<const float4*>(place)[0];
  *reinterpret_cast<float4*>(&result.values[4]) = reinterpret_cast<const float4*>(place)[1];
  return result;
}

__device__ inline void store_floats(float* place, const Floats& value) {
  reinterpret_cast<float4*>(place)[0] = *reinterpret_cast<const float4*>(&value.values[0]);
  reinterpret_cast<float4*>(place)[1] = *reinterpret_cast<const float4*>(&value.values[4]);
}

__device__ inline bool is_aligned(const void* place) { return reinterpret_cast<std::uintptr_t>(place) % 16 == 0; }

// Σ over the block, in an order that is always the same; thread 0 gets it.
__device__ inline double sum_over_block(double value) {
  constexpr int warps = threads_per_block / 32;
  __shared__ double of_warp[warps];
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 1; i < warps; ++i) value += of_warp[i];
  return value;
}

}  // namespace headscope::cuda
