// Bound by memory: forward reads queries and keys (and values, where they are repeated) and writes them; backward reads
// both, their gradients and those of the values, and writes all three. A group of up to 32 lanes takes the vector of one
// head, eight components in a lane: pairs that turn together are neighbours, so they lie in one lane.
#include <cuda_runtime.h>

#include "ops/cuda/elements.cuh"
#include "ops/cuda/head_rotation.h"

namespace headscope::cuda {
namespace {

constexpr int per_lane = 8;
constexpr int threads = 256;
constexpr int most_d = warp_width * per_lane;
// Blocks of each of the three parts of the backward pass: they fill a Hopper GPU.
constexpr std::int64_t backward_blocks = 132 * 4;

// Lanes for a vector of d components: a power of two.
int group_of(int d) {
  int group = 1;
  while (group * per_lane < d) group *= 2;
  return group;
}

// Eight components from `place` on, in float32.
struct Components {
  float values[per_lane];

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < per_lane; ++i) values[i] = 0;
  }
  template <class T>
  __device__ void load(const T* from) {
    constexpr int n = 16 / sizeof(T);
#pragma unroll
    for (int i = 0; i < per_lane / n; ++i) {
      const auto pack = reinterpret_cast<const Pack<T, n>*>(from)[i];
#pragma unroll
      for (int j = 0; j < n; ++j) values[i * n + j] = wide(pack.values[j]);
    }
  }
  template <class T>
  __device__ void save(T* to) const {
    constexpr int n = 16 / sizeof(T);
#pragma unroll
    for (int i = 0; i < per_lane / n; ++i) {
      Pack<T, n> pack;
#pragma unroll
      for (int j = 0; j < n; ++j) store(&pack.values[j], values[i * n + j]);
      reinterpret_cast<Pack<T, n>*>(to)[i] = pack;
    }
  }
  // Turns the pairs by the angles, or back (the transpose, which is what gradients take).
  template <bool back>
  __device__ void turn(const Components& angles) {
#pragma unroll
    for (int i = 0; i < per_lane; i += 2) {
      const float cosine = angles.values[i], sine = back ? -angles.values[i + 1] : angles.values[i + 1];
      const float a = values[i], b = values[i + 1];
      values[i] = a * cosine - b * sine;
      values[i + 1] = a * sine + b * cosine;
    }
  }
};

__device__ float dot(const Components& a, const Components& b) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < per_lane; ++i) sum += a.values[i] * b.values[i];
  return sum;
}

// Of the lanes of a group; all lanes of the warp call it.
__device__ float sum_over_group(float value, int group) {
  for (int offset = group / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(whole_warp, value, offset);
  return value;
}

// Rows are counted in 32 bits: divisions of 64 would take longer than all the rest. A group takes one row.
template <class T>
__global__ void __launch_bounds__(threads)
    forward(const T* __restrict__ qkv, const float* __restrict__ q_gain, const float* __restrict__ k_gain,
            const float* __restrict__ table, T* __restrict__ q, T* __restrict__ k, T* __restrict__ v,
            T* __restrict__ plain, int group, HeadRotationShape shape) {
  const unsigned d = shape.d, heads = shape.heads, kv_heads = shape.kv_heads, turned = heads + kv_heads;
  const unsigned vectors = v != nullptr ? turned + kv_heads : turned;
  const unsigned place = threadIdx.x % group * per_lane;
  const unsigned row = blockIdx.x * (threads / group) + threadIdx.x / group;
  const unsigned token = row / vectors, head = row % vectors;
  const bool inside = token < shape.tokens && place < d, is_query = head < heads, is_value = head >= turned;
  Components x;
  x.clear();
  if (inside) x.load(qkv + (static_cast<std::int64_t>(token) * (turned + kv_heads) + head) * d + place);
  if (q_gain != nullptr) {  // all lanes of the warp add up together
    const float factor = rsqrtf(sum_over_group(dot(x, x), group) / static_cast<float>(d) + shape.eps);
    if (inside && !is_value) {
      Components gain;
      gain.load((is_query ? q_gain : k_gain) + place);
#pragma unroll
      for (int i = 0; i < per_lane; ++i) x.values[i] *= factor * gain.values[i];
    }
  }
  if (!inside) return;
  if (!is_value) {
    if (plain != nullptr) x.save(plain + (static_cast<std::int64_t>(token) * turned + head) * d + place);
    Components angles;
    angles.load(table + token % static_cast<unsigned>(shape.t) * d + place);
    x.turn<false>(angles);
  }
  if (is_query) {
    x.save(q + (static_cast<std::int64_t>(token) * heads + head) * d + place);
    return;
  }
  const unsigned copies = shape.copies, key_head = head - (is_value ? turned : heads);
  T* copy = (is_value ? v : k) + (static_cast<std::int64_t>(token) * kv_heads + key_head) * copies * d + place;
  for (unsigned i = 0; i < copies; ++i) x.save(copy + i * d);
}

// What one third of the grid does: the queries (blockIdx.y = 0), the keys (1), or the values (2), whose gradient is
// copied.
template <class T>
__global__ void __launch_bounds__(threads)
    backward(const T* __restrict__ qkv, const float* __restrict__ q_gain, const float* __restrict__ k_gain,
             const float* __restrict__ table, const T* __restrict__ dq, const T* __restrict__ dk,
             const T* __restrict__ dv, T* __restrict__ d_qkv, float* __restrict__ gain_partials, int group,
             HeadRotationShape shape) {
  __shared__ float parts[threads * per_lane];
  const unsigned d = shape.d, part = blockIdx.y;
  const unsigned place = threadIdx.x % group * per_lane;
  const unsigned heads = part == 0 ? shape.heads : shape.kv_heads;
  const unsigned before = part == 0 ? 0 : part == 1 ? shape.heads : shape.heads + shape.kv_heads;  // in front of these
  const unsigned vectors = shape.heads + 2 * shape.kv_heads, t = static_cast<unsigned>(shape.t);
  const T* upstream = part == 0 ? dq : part == 1 ? dk : dv;
  const unsigned copies = part == 0 ? 1 : shape.copies;
  const float* gain_of_part = part == 0 ? q_gain : k_gain;
  const bool normed = q_gain != nullptr && part < 2;
  const unsigned groups = gridDim.x * (threads / group), all = static_cast<unsigned>(shape.tokens) * heads;
  Components gain, d_gain;
  gain.clear();
  d_gain.clear();
  if (normed && place < d) gain.load(gain_of_part + place);
  // All lanes of a warp take the same number of turns: they add up together.
  const unsigned own = blockIdx.x * (threads / group) + threadIdx.x / group, in_warp = own % (warp_width / group);
  for (unsigned row = own; row - in_warp < all; row += groups) {
    const bool inside = row < all && place < d;
    const unsigned token = row / heads;
    const std::int64_t packed = (static_cast<std::int64_t>(token) * vectors + before + row % heads) * d + place;
    Components dy;
    dy.clear();
    if (inside) dy.load(upstream + static_cast<std::int64_t>(row) * copies * d + place);
    for (unsigned copy = 1; inside && copy < copies; ++copy) {
      Components other;
      other.load(upstream + (static_cast<std::int64_t>(row) * copies + copy) * d + place);
#pragma unroll
      for (int i = 0; i < per_lane; ++i) dy.values[i] += other.values[i];
    }
    if (inside && part < 2) {
      Components angles;
      angles.load(table + token % t * d + place);
      dy.turn<true>(angles);
    }
    if (normed) {
      Components x;
      x.clear();
      if (inside) x.load(qkv + packed);
      const float factor = rsqrtf(sum_over_group(dot(x, x), group) / static_cast<float>(d) + shape.eps);
      float along = 0;
#pragma unroll
      for (int i = 0; i < per_lane; ++i) {
        x.values[i] *= factor;
        d_gain.values[i] += x.values[i] * dy.values[i];
        dy.values[i] *= gain.values[i];
        along += x.values[i] * dy.values[i];
      }
      along = sum_over_group(along, group) / static_cast<float>(d);
#pragma unroll
      for (int i = 0; i < per_lane; ++i) dy.values[i] = factor * (dy.values[i] - x.values[i] * along);
    }
    if (inside) dy.save(d_qkv + packed);
  }
  if (!normed) return;
#pragma unroll
  for (int i = 0; i < per_lane; ++i) parts[threadIdx.x * per_lane + i] = d_gain.values[i];
  __syncthreads();
  float* out = gain_partials + (static_cast<std::int64_t>(part) * gridDim.x + blockIdx.x) * d;
  const int stride = group * per_lane;  // from one group's components to the next one's
  for (unsigned i = threadIdx.x; i < d; i += threads) {
    float sum = 0;
    for (int g = 0; g < threads / group; ++g) sum += parts[g * stride + i];
    out[i] = sum;
  }
}

template <class T>
void launch_forward(const void* qkv, const float* q_gain, const float* k_gain, const float* table, void* q, void* k,
                    void* v, void* plain, const HeadRotationShape& shape, cudaStream_t stream) {
  const int group = group_of(shape.d);
  const std::int64_t rows = shape.tokens * (shape.heads + (v != nullptr ? 2 : 1) * shape.kv_heads);
  const auto blocks = static_cast<unsigned>((rows * group + threads - 1) / threads);
  forward<<<blocks, threads, 0, stream>>>(static_cast<const T*>(qkv), q_gain, k_gain, table, static_cast<T*>(q),
                                          static_cast<T*>(k), static_cast<T*>(v), static_cast<T*>(plain), group, shape);
}

template <class T>
void launch_backward(const void* qkv, const float* q_gain, const float* k_gain, const float* table, const void* dq,
                     const void* dk, const void* dv, void* d_qkv, float* gain_partials, const HeadRotationShape& shape,
                     cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(head_rotation_partials(shape)), 3);
  backward<<<grid, threads, 0, stream>>>(static_cast<const T*>(qkv), q_gain, k_gain, table, static_cast<const T*>(dq),
                                         static_cast<const T*>(dk), static_cast<const T*>(dv), static_cast<T*>(d_qkv),
                                         gain_partials, group_of(shape.d), shape);
}

}  // namespace

bool supports_head_rotation(int d) {
  return d >= per_lane && d % per_lane == 0 && d <= most_d;
}

void rotate_heads(const void* qkv, const float* q_gain, const float* k_gain, const float* table, void* q, void* k,
                  void* v, void* plain, const HeadRotationShape& shape, cudaStream_t stream) {
  if (shape.tokens == 0) return;
  if (shape.type == ElementType::f32)
    launch_forward<float>(qkv, q_gain, k_gain, table, q, k, v, plain, shape, stream);
  else
    launch_forward<__nv_bfloat16>(qkv, q_gain, k_gain, table, q, k, v, plain, shape, stream);
}

std::int64_t head_rotation_partials(const HeadRotationShape& shape) {
  const std::int64_t wanted = (shape.tokens * shape.heads * group_of(shape.d) + threads - 1) / threads;
  return wanted < backward_blocks ? wanted : backward_blocks;
}

void rotate_heads_backward(const void* qkv, const float* q_gain, const float* k_gain, const float* table,
                           const void* dq, const void* dk, const void* dv, void* d_qkv, float* gain_partials,
                           const HeadRotationShape& shape, cudaStream_t stream) {
  if (shape.tokens == 0) return;
  if (shape.type == ElementType::f32)
    launch_backward<float>(qkv, q_gain, k_gain, table, dq, dk, dv, d_qkv, gain_partials, shape, stream);
  else
    launch_backward<__nv_bfloat16>(qkv, q_gain, k_gain, table, dq, dk, dv, d_qkv, gain_partials, shape, stream);
}

}  // namespace headscope::cuda
