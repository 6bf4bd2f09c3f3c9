// Bound by memory: forward reads queries and keys and writes them; backward reads both, their gradients and those of the
// values, and writes all three. A group of 1 to 32 lanes takes the vectors of one token, whose angles it reads once, eight
// components in a lane: pairs that turn together are neighbours, so they lie in one lane. Many groups
// are under way at a time.
#include <cuda_runtime.h>

#include "ops/cuda/elements.cuh"
#include "ops/cuda/head_rotation.h"

namespace headscope::cuda {
namespace {

constexpr int per_lane = 8;
constexpr int threads = 256;
constexpr int most_d = warp_width * per_lane;
constexpr int forward_heads_at_once = 2, backward_heads_at_once = 1;  // what registers have room for
// Blocks that fill a Hopper GPU; more would only make more partial sums.
constexpr std::int64_t most_blocks = 132 * 4;

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

// The place of a group and of its lane.
struct Place {
  int component;            // the first of this lane
  std::int64_t token, step;  // the first token of this group, and from one to the next
  __device__ Place(int group)
      : component(static_cast<int>(threadIdx.x) % group * per_lane),
        token(static_cast<std::int64_t>(blockIdx.x) * (threads / group) + threadIdx.x / group),
        step(static_cast<std::int64_t>(gridDim.x) * (threads / group)) {}
};

// All lanes of a warp take the same turns, because they add up together: what is not `inside` loads and saves nothing.
template <class T>
__device__ void forward_heads(const T* from, T* to, T* plain, const float* gain_of_kind, const Components& angles,
                              int heads, int component, bool inside, int group, const HeadRotationShape& shape) {
  Components gain;
  gain.clear();
  if (gain_of_kind != nullptr && component < shape.d) gain.load(gain_of_kind + component);
  for (int first = 0; first < heads; first += forward_heads_at_once) {
    Components x[forward_heads_at_once];
#pragma unroll
    for (int i = 0; i < forward_heads_at_once; ++i) {
      x[i].clear();
      if (inside && first + i < heads) x[i].load(from + (first + i) * shape.d + component);
    }
#pragma unroll
    for (int i = 0; i < forward_heads_at_once; ++i) {
      if (gain_of_kind != nullptr) {
        const float factor = rsqrtf(sum_over_group(dot(x[i], x[i]), group) / static_cast<float>(shape.d) + shape.eps);
#pragma unroll
        for (int j = 0; j < per_lane; ++j) x[i].values[j] *= factor * gain.values[j];
      }
      if (!inside || first + i >= heads) continue;
      if (plain != nullptr) x[i].save(plain + (first + i) * shape.d + component);
      x[i].turn<false>(angles);
      x[i].save(to + (first + i) * shape.d + component);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(threads, 4)
    forward(const T* __restrict__ qkv, const float* __restrict__ q_gain, const float* __restrict__ k_gain,
            const float* __restrict__ table, T* __restrict__ q, T* __restrict__ k, T* __restrict__ plain, int group,
            HeadRotationShape shape) {
  const Place place(group);
  const int d = shape.d, heads = shape.heads, kv_heads = shape.kv_heads;
  // The first lane of the warp decides whether there is another turn.
  const std::int64_t ahead = threadIdx.x % warp_width / group;
  for (std::int64_t token = place.token; token - ahead < shape.tokens; token += place.step) {
    const bool inside = token < shape.tokens && place.component < d;
    Components angles;
    angles.clear();
    if (inside) angles.load(table + static_cast<int>(token) % static_cast<int>(shape.t) * d + place.component);
    const T* from = qkv + token * (heads + 2 * kv_heads) * d;
    T* before = plain == nullptr ? nullptr : plain + token * (heads + kv_heads) * d;
    forward_heads(from, q + token * heads * d, before, q_gain, angles, heads, place.component, inside, group, shape);
    forward_heads(from + heads * d, k + token * kv_heads * d, before == nullptr ? nullptr : before + heads * d, k_gain,
                  angles, kv_heads, place.component, inside, group, shape);
  }
}

template <class T>
__device__ void backward_heads(const T* from, const T* upstream, T* to, const float* gain_of_kind, Components& d_gain,
                               const Components& angles, int heads, int component, bool inside, int group,
                               const HeadRotationShape& shape) {
  const bool normed = gain_of_kind != nullptr;
  Components gain;
  gain.clear();
  if (normed && component < shape.d) gain.load(gain_of_kind + component);
  for (int first = 0; first < heads; first += backward_heads_at_once) {
    Components x[backward_heads_at_once], dy[backward_heads_at_once];
#pragma unroll
    for (int i = 0; i < backward_heads_at_once; ++i) {
      x[i].clear();
      dy[i].clear();
      if (!inside || first + i >= heads) continue;
      dy[i].load(upstream + (first + i) * shape.d + component);
      if (normed) x[i].load(from + (first + i) * shape.d + component);
    }
#pragma unroll
    for (int i = 0; i < backward_heads_at_once; ++i) {
      dy[i].turn<true>(angles);
      if (normed) {
        const float factor = rsqrtf(sum_over_group(dot(x[i], x[i]), group) / static_cast<float>(shape.d) + shape.eps);
        float along = 0;
#pragma unroll
        for (int j = 0; j < per_lane; ++j) {
          x[i].values[j] *= factor;
          d_gain.values[j] += x[i].values[j] * dy[i].values[j];
          dy[i].values[j] *= gain.values[j];
          along += x[i].values[j] * dy[i].values[j];
        }
        along = sum_over_group(along, group) / static_cast<float>(shape.d);
#pragma unroll
        for (int j = 0; j < per_lane; ++j) dy[i].values[j] = factor * (dy[i].values[j] - x[i].values[j] * along);
      }
      if (inside && first + i < heads) dy[i].save(to + (first + i) * shape.d + component);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(threads, 3)
    backward(const T* __restrict__ qkv, const float* __restrict__ q_gain, const float* __restrict__ k_gain,
             const float* __restrict__ table, const T* __restrict__ dq, const T* __restrict__ dk,
             const T* __restrict__ dv, T* __restrict__ d_qkv, float* __restrict__ gain_partials, int group,
             HeadRotationShape shape) {
  __shared__ float parts[threads * per_lane];
  const Place place(group);
  const int d = shape.d, heads = shape.heads, kv_heads = shape.kv_heads;
  Components d_gains[2];  // of queries and keys
  d_gains[0].clear();
  d_gains[1].clear();
  const std::int64_t ahead = threadIdx.x % warp_width / group;
  for (std::int64_t token = place.token; token - ahead < shape.tokens; token += place.step) {
    const bool inside = token < shape.tokens && place.component < d;
    Components angles;
    angles.clear();
    if (inside) angles.load(table + static_cast<int>(token) % static_cast<int>(shape.t) * d + place.component);
    const std::int64_t packed = token * (heads + 2 * kv_heads) * d;
    backward_heads(qkv + packed, dq + token * heads * d, d_qkv + packed, q_gain, d_gains[0], angles, heads,
                   place.component, inside, group, shape);
    backward_heads(qkv + packed + heads * d, dk + token * kv_heads * d, d_qkv + packed + heads * d, k_gain, d_gains[1],
                   angles, kv_heads, place.component, inside, group, shape);
    if (!inside) continue;
    const T* values = dv + token * kv_heads * d + place.component;
    T* values_to = d_qkv + packed + (heads + kv_heads) * d + place.component;
#pragma unroll 4
    for (int head = 0; head < kv_heads; ++head) {
      Components copied;
      copied.load(values + head * d);
      copied.save(values_to + head * d);
    }
  }
  if (q_gain == nullptr) return;
  const int stride = group * per_lane;  // from one group's components to the next one's
#pragma unroll
  for (int kind = 0; kind < 2; ++kind) {
    __syncthreads();  // the sums before are read
#pragma unroll
    for (int i = 0; i < per_lane; ++i) parts[threadIdx.x * per_lane + i] = d_gains[kind].values[i];
    __syncthreads();
    float* out = gain_partials + (static_cast<std::int64_t>(kind) * gridDim.x + blockIdx.x) * d;
    for (int i = static_cast<int>(threadIdx.x); i < d; i += threads) {
      float sum = 0;
      for (int g = 0; g < threads / group; ++g) sum += parts[g * stride + i];
      out[i] = sum;
    }
  }
}

std::int64_t blocks_of(const HeadRotationShape& shape) {
  const std::int64_t wanted = (shape.tokens * group_of(shape.d) + threads - 1) / threads;
  return wanted < most_blocks ? wanted : most_blocks;
}

template <class T>
void launch_forward(const void* qkv, const float* q_gain, const float* k_gain, const float* table, void* q, void* k,
                    void* plain, const HeadRotationShape& shape, cudaStream_t stream) {
  forward<<<static_cast<unsigned>(blocks_of(shape)), threads, 0, stream>>>(
      static_cast<const T*>(qkv), q_gain, k_gain, table, static_cast<T*>(q), static_cast<T*>(k), static_cast<T*>(plain),
      group_of(shape.d), shape);
}

template <class T>
void launch_backward(const void* qkv, const float* q_gain, const float* k_gain, const float* table, const void* dq,
                     const void* dk, const void* dv, void* d_qkv, float* gain_partials, const HeadRotationShape& shape,
                     cudaStream_t stream) {
  backward<<<static_cast<unsigned>(blocks_of(shape)), threads, 0, stream>>>(
      static_cast<const T*>(qkv), q_gain, k_gain, table, static_cast<const T*>(dq), static_cast<const T*>(dk),
      static_cast<const T*>(dv), static_cast<T*>(d_qkv), gain_partials, group_of(shape.d), shape);
}

}  // namespace

bool supports_head_rotation(int d) { return d >= per_lane && d % per_lane == 0 && d <= most_d; }

void rotate_heads(const void* qkv, const float* q_gain, const float* k_gain, const float* table, void* q, void* k,
                  void* plain, const HeadRotationShape& shape, cudaStream_t stream) {
  if (shape.tokens == 0) return;
  if (shape.type == ElementType::f32)
    launch_forward<float>(qkv, q_gain, k_gain, table, q, k, plain, shape, stream);
  else
    launch_forward<__nv_bfloat16>(qkv, q_gain, k_gain, table, q, k, plain, shape, stream);
}

std::int64_t head_rotation_partials(const HeadRotationShape& shape) { return blocks_of(shape); }

void rotate_heads_backward(const void* qkv, const float* q_gain, const float* k_gain, const float* table, const void* dq,
                           const void* dk, const void* dv, void* d_qkv, float* gain_partials,
                           const HeadRotationShape& shape, cudaStream_t stream) {
  if (shape.tokens == 0) return;
  if (shape.type == ElementType::f32)
    launch_backward<float>(qkv, q_gain, k_gain, table, dq, dk, dv, d_qkv, gain_partials, shape, stream);
  else
    launch_backward<__nv_bfloat16>(qkv, q_gain, k_gain, table, dq, dk, dv, d_qkv, gain_partials, shape, stream);
}

}  // namespace headscope::cuda
