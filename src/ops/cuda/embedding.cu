// Tokens of one kind stand together after sorting. Cut into windows of 32, most runs lie within one and are added there. A
// run that crosses an edge leaves one partial sum in each window, and a second kernel adds those up in their order: no
// atomics, and a frequent word is no long chain. The gradients are read once.
#include <cuda_runtime.h>

#include "ops/cuda/elements.cuh"
#include "ops/cuda/embedding.h"

namespace headscope::cuda {
namespace {

constexpr int window = 32;
constexpr int threads = 128;
constexpr int n = 4;  // columns of a thread

std::int64_t windows_of(std::int64_t tokens) { return (tokens + window - 1) / window; }

struct Columns {
  float values[n] = {};

  template <class T>
  __device__ void add(const T* from) {
    const Pack<T, n> pack = *reinterpret_cast<const Pack<T, n>*>(from);
#pragma unroll
    for (int j = 0; j < n; ++j) values[j] += wide(pack.values[j]);
  }
  __device__ void save(float* to) const {
#pragma unroll
    for (int j = 0; j < n; ++j) to[j] = values[j];
  }
  __device__ void add_to(float* to, float scale) const {
#pragma unroll
    for (int j = 0; j < n; ++j) to[j] += scale * values[j];
  }
};

// scratch: [windows, 2, d]. 0: of a run that began in an earlier window; 1: of one that begins here and goes on.
template <class T>
__global__ void within_windows(const T* __restrict__ dx, const std::int64_t* __restrict__ sorted,
                               const std::int64_t* __restrict__ order, float* __restrict__ gradient,
                               float* __restrict__ scratch, EmbeddingShape shape) {
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.y) * threads + threadIdx.x) * n, d = shape.d;
  if (column >= d) return;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * window;
  const std::int64_t end = first + window < shape.tokens ? first + window : shape.tokens;
  float* own = scratch + static_cast<std::int64_t>(blockIdx.x) * 2 * d + column;
  Columns sum;
  for (std::int64_t i = first; i < end; ++i) {
    const std::int64_t token = sorted[i];
    sum.add(dx + order[i] * d + column);
    if (i + 1 < end && sorted[i + 1] == token) continue;
    const bool began_earlier = first > 0 && sorted[first - 1] == token;
    const bool goes_on = i + 1 == end && end < shape.tokens && sorted[end] == token;
    if (began_earlier)
      sum.save(own);
    else if (goes_on)
      sum.save(own + d);
    else
      sum.add_to(gradient + token * d + column, shape.scale);
    sum = Columns();
  }
}

__global__ void across_windows(const std::int64_t* __restrict__ sorted, float* __restrict__ gradient,
                               const float* __restrict__ scratch, EmbeddingShape shape) {
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.y) * threads + threadIdx.x) * n, d = shape.d;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * window;
  std::int64_t end = first + window;
  if (column >= d || end >= shape.tokens) return;
  const std::int64_t token = sorted[end - 1];
  if (sorted[end] != token || (first > 0 && sorted[first - 1] == token)) return;  // no run begins here and goes on
  const float* part = scratch + static_cast<std::int64_t>(blockIdx.x) * 2 * d + column;
  Columns sum;
  sum.add(part + d);
  while (end < shape.tokens && sorted[end] == token) {
    part += 2 * d;
    sum.add(part);
    end += window;
    if (end > shape.tokens || sorted[end - 1] != token) break;  // the run ends in that window
  }
  sum.add_to(gradient + token * d + column, shape.scale);
}

template <class T>
void launch(const void* dx, const std::int64_t* sorted, const std::int64_t* order, float* gradient, float* scratch,
            const EmbeddingShape& shape, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(windows_of(shape.tokens)),
                  static_cast<unsigned>((shape.d / n + threads - 1) / threads));
  within_windows<<<grid, threads, 0, stream>>>(static_cast<const T*>(dx), sorted, order, gradient, scratch, shape);
  across_windows<<<grid, threads, 0, stream>>>(sorted, gradient, scratch, shape);
}

}  // namespace

std::int64_t embedding_scratch(const EmbeddingShape& shape) { return windows_of(shape.tokens) * 2 * shape.d; }

void add_embedding_gradient(const void* dx, const std::int64_t* sorted, const std::int64_t* order, float* gradient,
                            float* scratch, const EmbeddingShape& shape, cudaStream_t stream) {
  if (shape.tokens == 0) return;
  if (shape.type == ElementType::f32)
    launch<float>(dx, sorted, order, gradient, scratch, shape, stream);
  else
    launch<__nv_bfloat16>(dx, sorted, order, gradient, scratch, shape, stream);
}

}  // namespace headscope::cuda
