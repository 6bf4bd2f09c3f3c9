// Bound by memory: forward moves 2 elements (x in, y out), backward 3 (x or y, dy in, dx out), against 4 and 7 of the
// composed form. Each thread moves 16 bytes at a time, neighbours beside each other; the grid covers the array.
#include <cuda_runtime.h>

#include "ops/cuda/elements.cuh"
#include "ops/cuda/squared_relu.h"

namespace headscope::cuda {
namespace {

constexpr int threads = 256;
constexpr int vector_bytes = 16;

enum class Pass { forward, backward, backward_of_output };

// `in`: x, or the output y for backward_of_output, where max(x, 0) is its root.
template <Pass pass>
__device__ float value(float in, float upstream) {
  if constexpr (pass == Pass::backward_of_output) return 2.0f * sqrtf(in) * upstream;
  const float positive = in < 0.0f ? 0.0f : in;  // NaN stays
  return pass == Pass::forward ? positive * positive : 2.0f * positive * upstream;
}

// `out` may be `in` or `dy`: an element is read and written by one thread.
template <class T, Pass pass>
__global__ void kernel(const T* in, const T* dy, T* out, std::int64_t count) {
  using P = Pack<T, vector_bytes / sizeof(T)>;
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x) * P::size;
  if (first + P::size <= count) {
    const P given = *reinterpret_cast<const P*>(in + first);
    P upstream, result;
    if constexpr (pass != Pass::forward) upstream = *reinterpret_cast<const P*>(dy + first);
#pragma unroll
    for (int i = 0; i < P::size; ++i)
      store(&result.values[i],
            value<pass>(wide(given.values[i]), pass == Pass::forward ? 0.0f : wide(upstream.values[i])));
    *reinterpret_cast<P*>(out + first) = result;
  } else {
    for (std::int64_t i = first; i < count; ++i)
      store(out + i, value<pass>(wide(in[i]), pass == Pass::forward ? 0.0f : wide(dy[i])));
  }
}

template <class T, Pass pass>
void launch(const void* in, const void* dy, void* out, std::int64_t count, cudaStream_t stream) {
  if (count == 0) return;
  constexpr std::int64_t per_block = static_cast<std::int64_t>(threads) * (vector_bytes / sizeof(T));
  const auto blocks = static_cast<unsigned>((count + per_block - 1) / per_block);
  kernel<T, pass><<<blocks, threads, 0, stream>>>(static_cast<const T*>(in), static_cast<const T*>(dy),
                                                  static_cast<T*>(out), count);
}

template <Pass pass>
void launch(const void* in, const void* dy, void* out, std::int64_t count, ElementType type, cudaStream_t stream) {
  if (type == ElementType::f32)
    launch<float, pass>(in, dy, out, count, stream);
  else
    launch<__nv_bfloat16, pass>(in, dy, out, count, stream);
}

}  // namespace

void squared_relu_forward(const void* x, void* y, std::int64_t count, ElementType type, cudaStream_t stream) {
  launch<Pass::forward>(x, nullptr, y, count, type, stream);
}

void squared_relu_backward(const void* x, const void* dy, void* dx, std::int64_t count, ElementType type,
                           cudaStream_t stream) {
  launch<Pass::backward>(x, dy, dx, count, type, stream);
}

void squared_relu_backward_of_output(const void* y, const void* dy, void* dx, std::int64_t count, ElementType type,
                                     cudaStream_t stream) {
  launch<Pass::backward_of_output>(y, dy, dx, count, type, stream);
}

}  // namespace headscope::cuda
