// Bound by memory: forward moves 2 elements (x in, y out), backward 3 (x, dy in, dx out), against 4 and 7 of the composed
// form. Each thread moves 16 bytes at a time, neighbours beside each other; the grid covers the array.
#include <cuda_runtime.h>

#include "ops/cuda/elements.cuh"
#include "ops/cuda/squared_relu.h"

namespace headscope::cuda {
namespace {

constexpr int threads = 256;
constexpr int vector_bytes = 16;

template <class T, bool backward>
__global__ void kernel(const T* __restrict__ x, const T* __restrict__ dy, T* __restrict__ out, std::int64_t count) {
  using P = Pack<T, vector_bytes / sizeof(T)>;
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x) * P::size;
  if (first + P::size <= count) {
    const P in = *reinterpret_cast<const P*>(x + first);
    P upstream, result;
    if constexpr (backward) upstream = *reinterpret_cast<const P*>(dy + first);
#pragma unroll
    for (int i = 0; i < P::size; ++i) {
      const float positive = fmaxf(wide(in.values[i]), 0.0f);
      store(&result.values[i], backward ? 2.0f * positive * wide(upstream.values[i]) : positive * positive);
    }
    *reinterpret_cast<P*>(out + first) = result;
  } else {
    for (std::int64_t i = first; i < count; ++i) {
      const float positive = fmaxf(wide(x[i]), 0.0f);
      store(out + i, backward ? 2.0f * positive * wide(dy[i]) : positive * positive);
    }
  }
}

template <class T, bool backward>
void launch(const void* x, const void* dy, void* out, std::int64_t count, cudaStream_t stream) {
  if (count == 0) return;
  constexpr std::int64_t per_block = static_cast<std::int64_t>(threads) * (vector_bytes / sizeof(T));
  const auto blocks = static_cast<unsigned>((count + per_block - 1) / per_block);
  kernel<T, backward><<<blocks, threads, 0, stream>>>(static_cast<const T*>(x), static_cast<const T*>(dy),
                                                      static_cast<T*>(out), count);
}

}  // namespace

void squared_relu_forward(const void* x, void* y, std::int64_t count, ElementType type, cudaStream_t stream) {
  if (type == ElementType::f32)
    launch<float, false>(x, nullptr, y, count, stream);
  else
    launch<__nv_bfloat16, false>(x, nullptr, y, count, stream);
}

void squared_relu_backward(const void* x, const void* dy, void* dx, std::int64_t count, ElementType type,
                           cudaStream_t stream) {
  if (type == ElementType::f32)
    launch<float, true>(x, dy, dx, count, stream);
  else
    launch<__nv_bfloat16, true>(x, dy, dx, count, stream);
}

}  // namespace headscope::cuda
