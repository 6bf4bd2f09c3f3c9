// Bound by memory: forward reads x and writes y; backward reads x and dy and writes dx. A warp takes a row, whose elements stay
// in registers; rows of one gain go to the same warp, which adds up that gain's gradient on the way.
#include <cuda_runtime.h>

#include <type_traits>

#include "ops/cuda/elements.cuh"
#include "ops/cuda/rms_norm.h"

namespace headscope::cuda {
namespace {

constexpr int warp = 32;
constexpr int warps_per_block = 4;
// Four blocks for each of 132 multiprocessors fill a Hopper GPU; more would only make more partial sums.
constexpr std::int64_t most_blocks = 528;

__device__ float sum_over_warp(float value) {
#pragma unroll
  for (int offset = warp / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// One row in registers: element (i·32 + lane)·n + j of the row is values[i·n + j].
template <class T, int per_lane>
struct Row {
  static constexpr int n = per_lane < 16 / static_cast<int>(sizeof(T)) ? per_lane : 16 / static_cast<int>(sizeof(T));
  float values[per_lane];

  __device__ void load(const T* row, int lane) {
    const auto* packs = reinterpret_cast<const Pack<T, n>*>(row);
#pragma unroll
    for (int i = 0; i < per_lane / n; ++i) {
      const Pack<T, n> pack = packs[i * warp + lane];
#pragma unroll
      for (int j = 0; j < n; ++j) values[i * n + j] = wide(pack.values[j]);
    }
  }
  __device__ void save(T* row, int lane) const {
    auto* packs = reinterpret_cast<Pack<T, n>*>(row);
#pragma unroll
    for (int i = 0; i < per_lane / n; ++i) {
      Pack<T, n> pack;
#pragma unroll
      for (int j = 0; j < n; ++j) store(&pack.values[j], values[i * n + j]);
      packs[i * warp + lane] = pack;
    }
  }
  // Where element k of this lane is in its row: gains are float32 and are read one by one, from the cache.
  __device__ static int place(int k, int lane) { return (k / n * warp + lane) * n + k % n; }
};

template <class T>
__device__ const T* row_of(const T* x, std::int64_t row, const RmsNormShape& shape) {
  return x + row / shape.inner * shape.outer_stride + row % shape.inner * shape.d;
}

template <class T, int per_lane>
__global__ void forward(const T* __restrict__ x, const float* __restrict__ gain, T* __restrict__ y,
                        float* __restrict__ inverse, float eps, RmsNormShape shape) {
  const int lane = threadIdx.x % warp;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * warps_per_block + threadIdx.x / warp;
  if (row >= shape.rows) return;
  Row<T, per_lane> values;
  values.load(row_of(x, row, shape), lane);
  float squares = 0;
#pragma unroll
  for (int k = 0; k < per_lane; ++k) squares += values.values[k] * values.values[k];
  const float factor = rsqrtf(sum_over_warp(squares) / static_cast<float>(shape.d) + eps);
  const float* own = shape.gains > 0 ? gain + row % shape.gains * shape.d : nullptr;
#pragma unroll
  for (int k = 0; k < per_lane; ++k)
    values.values[k] *= own != nullptr ? factor * own[Row<T, per_lane>::place(k, lane)] : factor;
  values.save(y + row * shape.d, lane);
  if (lane == 0) inverse[row] = factor;
}

// Warp w of `step` in all takes rows w, w + step, …; step is a multiple of the number of gains.
template <class T, int per_lane>
__global__ void backward(const T* __restrict__ x, const float* __restrict__ gain, const float* __restrict__ inverse,
                         const T* __restrict__ dy, T* __restrict__ dx, float* __restrict__ gain_partials,
                         std::int64_t step, RmsNormShape shape) {
  const int lane = threadIdx.x % warp;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * warps_per_block + threadIdx.x / warp;
  if (first >= step) return;
  float own[per_lane], d_gain[per_lane];
#pragma unroll
  for (int k = 0; k < per_lane; ++k) {
    own[k] = shape.gains > 0 ? gain[first % shape.gains * shape.d + Row<T, per_lane>::place(k, lane)] : 1.0f;
    d_gain[k] = 0;
  }
  for (std::int64_t row = first; row < shape.rows; row += step) {
    Row<T, per_lane> unit, upstream;
    unit.load(row_of(x, row, shape), lane);
    upstream.load(dy + row * shape.d, lane);
    const float factor = inverse[row];
    float along = 0;
#pragma unroll
    for (int k = 0; k < per_lane; ++k) {
      unit.values[k] *= factor;
      d_gain[k] += unit.values[k] * upstream.values[k];
      upstream.values[k] *= own[k];
      along += unit.values[k] * upstream.values[k];
    }
    along = sum_over_warp(along) / static_cast<float>(shape.d);
#pragma unroll
    for (int k = 0; k < per_lane; ++k) upstream.values[k] = factor * (upstream.values[k] - unit.values[k] * along);
    upstream.save(dx + row * shape.d, lane);
  }
  if (gain_partials == nullptr) return;
#pragma unroll
  for (int k = 0; k < per_lane; ++k)
    gain_partials[first * shape.d + Row<T, per_lane>::place(k, lane)] = d_gain[k];
}

// Calls run(std::integral_constant<int, d / 32>) for a supported d.
template <class Run>
void with_per_lane(int d, Run run) {
  switch (d / warp) {
    case 1: return run(std::integral_constant<int, 1>());
    case 2: return run(std::integral_constant<int, 2>());
    case 4: return run(std::integral_constant<int, 4>());
    case 8: return run(std::integral_constant<int, 8>());
    case 16: return run(std::integral_constant<int, 16>());
    case 32: return run(std::integral_constant<int, 32>());
    case 64: return run(std::integral_constant<int, 64>());
  }
}

// Warps of the backward pass: as many as fill the GPU, a multiple of the number of gains.
std::int64_t backward_warps(const RmsNormShape& shape) {
  const std::int64_t gains = shape.gains > 0 ? shape.gains : 1;
  const std::int64_t wanted = shape.rows < most_blocks * warps_per_block ? shape.rows : most_blocks * warps_per_block;
  return (wanted + gains - 1) / gains * gains;
}

unsigned blocks_for(std::int64_t warps) { return static_cast<unsigned>((warps + warps_per_block - 1) / warps_per_block); }

template <class T>
void launch_forward(const void* x, const float* gain, void* y, float* inverse, float eps, const RmsNormShape& shape,
                    cudaStream_t stream) {
  with_per_lane(shape.d, [&](auto per_lane) {
    forward<T, per_lane><<<blocks_for(shape.rows), warp * warps_per_block, 0, stream>>>(
        static_cast<const T*>(x), gain, static_cast<T*>(y), inverse, eps, shape);
  });
}

template <class T>
void launch_backward(const void* x, const float* gain, const float* inverse, const void* dy, void* dx,
                     float* gain_partials, const RmsNormShape& shape, cudaStream_t stream) {
  const std::int64_t warps = backward_warps(shape);
  with_per_lane(shape.d, [&](auto per_lane) {
    backward<T, per_lane><<<blocks_for(warps), warp * warps_per_block, 0, stream>>>(
        static_cast<const T*>(x), gain, inverse, static_cast<const T*>(dy), static_cast<T*>(dx), gain_partials, warps,
        shape);
  });
}

}  // namespace

bool supports_rms_norm(int d) {
  const int per_lane = d / warp;
  return d % warp == 0 && per_lane >= 1 && per_lane <= 64 && (per_lane & (per_lane - 1)) == 0;
}

void rms_norm_forward(const void* x, const float* gain, void* y, float* inverse, float eps, const RmsNormShape& shape,
                      cudaStream_t stream) {
  if (shape.rows == 0) return;
  if (shape.type == ElementType::f32)
    launch_forward<float>(x, gain, y, inverse, eps, shape, stream);
  else
    launch_forward<__nv_bfloat16>(x, gain, y, inverse, eps, shape, stream);
}

std::int64_t rms_norm_partials(const RmsNormShape& shape) {
  return shape.gains > 0 ? backward_warps(shape) / shape.gains : 0;
}

void rms_norm_backward(const void* x, const float* gain, const float* inverse, const void* dy, void* dx,
                       float* gain_partials, const RmsNormShape& shape, cudaStream_t stream) {
  if (shape.rows == 0) return;
  if (shape.type == ElementType::f32)
    launch_backward<float>(x, gain, inverse, dy, dx, gain_partials, shape, stream);
  else
    launch_backward<__nv_bfloat16>(x, gain, inverse, dy, dx, gain_partials, shape, stream);
}

}  // namespace headscope::cuda
