// Reads the keys once (8 MB for 16384 tokens of 4 heads of 64 in bfloat16: 2 µs of memory). A warp takes a key at a time,
// of which a lane holds up to four components; three sums over the warp in float64 are what bounds it, about 200
// instructions for each of 65536 keys: 15 µs. A second kernel adds up what the chunks of tokens left.
#include <cuda_runtime.h>

#include "ops/cuda/elements.cuh"
#include "probe/cuda/key_sums.h"

namespace headscope::cuda {
namespace {

constexpr int warp = 32;
constexpr unsigned all_lanes = 0xffffffffu;
constexpr int warps = 8;
constexpr int per_lane = 4;
constexpr int most_d = warp * per_lane;
// Tokens for each warp of a block: enough to pay for the sums over the block; 128 chunks of 16384 tokens, times heads,
// fill a Hopper GPU.
constexpr int keys_per_warp = 16;
constexpr int keys_per_block = warps * keys_per_warp;

// The larger; NaN if one is.
__device__ double larger(double a, double b) { return a > b || isnan(a) ? a : b; }

__device__ double sum_over_warp(double value) {
#pragma unroll
  for (int offset = warp / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(all_lanes, value, offset);
  return value;
}
__device__ double largest_of_warp(double value) {
#pragma unroll
  for (int offset = warp / 2; offset > 0; offset /= 2)
    value = larger(value, __shfl_xor_sync(all_lanes, value, offset));
  return value;
}

// The key's components of this lane: lane, lane + 32, …; 0 beyond d.
template <class T>
__device__ void load_key(double (&key)[per_lane], const T* from, int lane, int d) {
#pragma unroll
  for (int j = 0; j < per_lane; ++j) {
    const int i = j * warp + lane;
    key[j] = i < d ? static_cast<double>(wide(from[i])) : 0.0;
  }
}
__device__ double norm_of(const double (&key)[per_lane]) {
  double squares = 0;
#pragma unroll
  for (int j = 0; j < per_lane; ++j) squares += key[j] * key[j];
  return sqrt(sum_over_warp(squares));
}

// Combines two partial results of value number v.
__device__ double combined(int v, double a, double b) {
  if (v == norm_shift || v == component_shift) return a;  // all have the same
  return v == largest_top ? larger(a, b) : a + b;
}

template <class T>
__global__ void __launch_bounds__(warps* warp)
    add_keys(const T* __restrict__ k, KeyShape shape, int values, double* __restrict__ partials) {
  extern __shared__ double parts[];  // [warps, values]
  const int lane = threadIdx.x % warp, own_warp = threadIdx.x / warp, head = static_cast<int>(blockIdx.y), d = shape.d;
  const T* keys = k + static_cast<std::int64_t>(head) * d;
  const std::int64_t stride = static_cast<std::int64_t>(shape.heads) * d;
  double key[per_lane];
  load_key(key, keys, lane, d);
  const double first_norm = norm_of(key), first_component = wide(keys[0]);
  double scalars[key_scalars] = {};  // sums of components: of this lane; all others: the same in all lanes
  double vectors[key_vectors][per_lane] = {};
  scalars[norm_shift] = first_norm;
  scalars[component_shift] = first_component;
  scalars[largest_top] = -INFINITY;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * keys_per_block + own_warp * keys_per_warp;
  const std::int64_t end = begin + keys_per_warp < shape.n ? begin + keys_per_warp : shape.n;
  for (std::int64_t n = begin; n < end; ++n) {
    load_key(key, keys + n * stride, lane, d);
    double squares = 0, fourths = 0, top = 0;
#pragma unroll
    for (int j = 0; j < per_lane; ++j) {
      const double square = key[j] * key[j];
      squares += square;
      fourths += square * square;
      top = larger(top, fabs(key[j]));
      vectors[energies][j] += square;
      if (j * warp + lane < d) {
        const double shifted = key[j] - first_component;
        scalars[components] += shifted;
        scalars[component_squares] += shifted * shifted;
      }
    }
    const double energy = sum_over_warp(squares), norm = sqrt(energy);
    fourths = sum_over_warp(fourths);
    top = largest_of_warp(top);
    scalars[norms] += norm - first_norm;
    scalars[norm_squares] += (norm - first_norm) * (norm - first_norm);
    scalars[tops] += top;
    scalars[largest_top] = larger(scalars[largest_top], top);
    if (n % shape.t == 0) scalars[token0_norms] += norm;
    if (!(norm > 0)) continue;
    scalars[alive] += 1;
    scalars[axes] += top / norm;
    scalars[ratios] += energy * energy / fourths;
#pragma unroll
    for (int j = 0; j < per_lane; ++j) {
      vectors[units][j] += key[j] / norm;
      vectors[on_top][j] += fabs(key[j]) == top ? 1.0 : 0.0;
    }
  }
  scalars[components] = sum_over_warp(scalars[components]);
  scalars[component_squares] = sum_over_warp(scalars[component_squares]);
  double* own = parts + own_warp * values;
  if (lane == 0) {
#pragma unroll
    for (int v = 0; v < key_scalars; ++v) own[v] = scalars[v];
  }
#pragma unroll
  for (int v = 0; v < key_vectors; ++v) {
#pragma unroll
    for (int j = 0; j < per_lane; ++j)
      if (j * warp + lane < d) own[key_scalars + v * d + j * warp + lane] = vectors[v][j];
  }
  __syncthreads();
  double* out = partials + (static_cast<std::int64_t>(blockIdx.x) * shape.heads + head) * values;
  for (int v = static_cast<int>(threadIdx.x); v < values; v += warps * warp) {
    double total = parts[v];
    for (int w = 1; w < warps; ++w) total = combined(v, total, parts[w * values + v]);
    out[v] = total;
  }
}

// A thread for each value of each head.
constexpr int sum_threads = 64;

__global__ void add_chunks(const double* __restrict__ partials, double* __restrict__ sums, std::int64_t chunks,
                           int values, int all) {
  const int i = static_cast<int>(blockIdx.x * sum_threads + threadIdx.x);
  if (i >= all) return;
  double total = partials[i];
#pragma unroll 8
  for (std::int64_t c = 1; c < chunks; ++c) total = combined(i % values, total, partials[c * all + i]);
  sums[i] = total;
}

}  // namespace

bool supports_key_sums(int d) { return d >= 1 && d <= most_d; }

std::int64_t key_chunks(const KeyShape& shape) { return (shape.n + keys_per_block - 1) / keys_per_block; }

void key_sums(const void* k, const KeyShape& shape, double* partials, double* sums, cudaStream_t stream) {
  const std::int64_t chunks = key_chunks(shape);
  const int values = key_values(shape.d), all = shape.heads * values;
  const dim3 grid(static_cast<unsigned>(chunks), static_cast<unsigned>(shape.heads));
  const std::size_t bytes = static_cast<std::size_t>(warps) * values * sizeof(double);  // 25 KB for 128 dimensions
  if (shape.type == ElementType::f32)
    add_keys<<<grid, warps * warp, bytes, stream>>>(static_cast<const float*>(k), shape, values, partials);
  else
    add_keys<<<grid, warps * warp, bytes, stream>>>(static_cast<const __nv_bfloat16*>(k), shape, values, partials);
  add_chunks<<<static_cast<unsigned>((all + sum_threads - 1) / sum_threads), sum_threads, 0, stream>>>(
      partials, sums, chunks, values, all);
}

}  // namespace headscope::cuda
