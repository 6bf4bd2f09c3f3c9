// Bound by memory: forward reads x (and what is added to it) and writes y (and the sum); backward reads x and dy (and
// the gradient of the sum) and writes dx. A team of warps takes a row, whose elements stay in registers; rows of one gain
// go to the same team, which adds up that gain's gradient on the way.
#include <cuda_runtime.h>

#include <type_traits>

#include "ops/cuda/elements.cuh"
#include "ops/cuda/rms_norm.h"

namespace headscope::cuda {
namespace {

// One warp for a row of up to 512 elements, four rows in a block; a block of several warps for longer ones.
constexpr int rows_per_block = 4, most_warps = 16;
constexpr int widest_of_a_warp = 512, widest = 8192;
constexpr int elements_of_a_lane = 8;  // or more, where that would take more than most_warps
// Warps of the backward pass that fill a Hopper GPU of 132 multiprocessors; more would only make more partial sums.
constexpr std::int64_t backward_warps = 132 * 16;

// How a row of d elements is read: in packs of n, `packs` of them in each lane of a team.
struct Layout {
  int n = 0, packs = 0, warps = 1;
};

template <class T>
Layout layout_of(int d) {
  Layout layout;
  layout.n = 1;
  for (const int n : {16 / static_cast<int>(sizeof(T)), 2})
    if (layout.n == 1 && d % n == 0 && d / n >= warp_width) layout.n = n;
  while (d > widest_of_a_warp && layout.warps < most_warps && layout.warps * warp_width * elements_of_a_lane < d)
    layout.warps *= 2;
  layout.packs = (d / layout.n + layout.warps * warp_width - 1) / (layout.warps * warp_width);
  return layout;
}

// One row as it is in memory, in registers: pack i of this lane. Zero where the row has ended.
template <class T, int n, int packs>
struct Raw {
  Pack<T, n> all[packs];

  __device__ void load(const T* row, int first, int step, int d) {
#pragma unroll
    for (int i = 0; i < packs; ++i) {
      const int place = (first + i * step) * n;
      if (place < d) {
        all[i] = *reinterpret_cast<const Pack<T, n>*>(row + place);
      } else {
#pragma unroll
        for (int j = 0; j < n; ++j) store(&all[i].values[j], 0.0f);
      }
    }
  }
  __device__ void save(T* row, int first, int step, int d) const {
#pragma unroll
    for (int i = 0; i < packs; ++i) {
      const int place = (first + i * step) * n;
      if (place < d) *reinterpret_cast<Pack<T, n>*>(row + place) = all[i];
    }
  }
  __device__ float operator[](int k) const { return wide(all[k / n].values[k % n]); }
  __device__ void set(int k, float value) { store(&all[k / n].values[k % n], value); }
};

template <class T>
__device__ const T* row_of(const T* x, int row, const RmsNormShape& shape) {
  if (shape.inner == 1) return x + row * shape.outer_stride;
  const int inner = static_cast<int>(shape.inner);
  return x + row / inner * shape.outer_stride + row % inner * shape.d;
}

__device__ const float* gain_of(const float* gain, int row, const RmsNormShape& shape) {
  return shape.gains == 1 ? gain : gain + row % shape.gains * shape.d;
}

// The warps that share a row: a warp alone, or a block.
template <bool several>
struct Team {
  int lane = threadIdx.x % warp_width, own_warp = threadIdx.x / warp_width;
  int first = several ? static_cast<int>(threadIdx.x) : lane;   // the first pack of this lane
  int step = several ? static_cast<int>(blockDim.x) : warp_width;  // from one pack to the next
  int index = several ? static_cast<int>(blockIdx.x) : static_cast<int>(blockIdx.x) * rows_per_block + own_warp;
  int turn = 0;

  // `shared`: [2][32]. Two turns, so that one barrier is enough.
  __device__ float sum(float value, float* shared) {
    value = sum_over_warp(value);
    if constexpr (several) {
      float* parts = shared + turn * warp_width;
      turn ^= 1;
      if (lane == 0) parts[own_warp] = value;
      __syncthreads();
      value = 0;
      for (int w = 0; w < step / warp_width; ++w) value += parts[w];
    }
    return value;
  }
};

// Registers are to be so few that so many blocks of four rows fit on a multiprocessor: enough loads are under way then.
constexpr int forward_residents = 8;
template <class T>
constexpr int backward_residents = sizeof(T) == 2 ? 4 : 2;

// Each team takes one row.
template <class T, int n, int packs, bool several>
__global__ void __launch_bounds__((several ? most_warps : rows_per_block) * warp_width, several ? 1 : forward_residents)
    forward(const T* __restrict__ x, const T* __restrict__ delta, const float* __restrict__ gain, T* __restrict__ sum,
            T* __restrict__ y, float* __restrict__ inverse, float eps, RmsNormShape shape) {
  __shared__ float parts[2 * warp_width];
  Team<several> team;
  const int d = shape.d, row = team.index;
  if (row >= shape.rows) return;
  const std::int64_t begin = static_cast<std::int64_t>(row) * d;
  Raw<T, n, packs> values;
  values.load(row_of(x, row, shape), team.first, team.step, d);
  if (delta != nullptr) {
    Raw<T, n, packs> more;
    more.load(delta + begin, team.first, team.step, d);
#pragma unroll
    for (int k = 0; k < n * packs; ++k) values.set(k, values[k] + more[k]);
    values.save(sum + begin, team.first, team.step, d);
  }
  float squares = 0;
#pragma unroll
  for (int k = 0; k < n * packs; ++k) squares += values[k] * values[k];
  const float factor = rsqrtf(team.sum(squares, parts) / static_cast<float>(d) + eps);
  if (shape.gains > 0) {
    Raw<float, n, packs> own;
    own.load(gain_of(gain, row, shape), team.first, team.step, d);
#pragma unroll
    for (int k = 0; k < n * packs; ++k) values.set(k, values[k] * (factor * own[k]));
  } else {
#pragma unroll
    for (int k = 0; k < n * packs; ++k) values.set(k, values[k] * factor);
  }
  values.save(y + begin, team.first, team.step, d);
  if (team.first == 0) inverse[row] = factor;
}

// Team number t of `teams` takes rows t, t + teams, …; their number is a multiple of the number of gains. A row is
// loaded while the one before it is computed.
template <class T, int n, int packs, bool several>
__global__ void __launch_bounds__((several ? most_warps : rows_per_block) * warp_width, several ? 1 : backward_residents<T>)
    backward(const T* __restrict__ x, const float* __restrict__ gain, const float* __restrict__ inverse,
             const T* __restrict__ dy, const T* d_sum, T* dx, float* __restrict__ gain_partials, int teams,
             RmsNormShape shape) {
  __shared__ float parts[2 * warp_width];
  Team<several> team;
  const int d = shape.d, rows = static_cast<int>(shape.rows);
  if (team.index >= teams) return;
  Raw<float, n, packs> own, d_gain;
#pragma unroll
  for (int k = 0; k < n * packs; ++k) {
    own.set(k, 1);
    d_gain.set(k, 0);
  }
  if (shape.gains > 0) own.load(gain_of(gain, team.index, shape), team.first, team.step, d);
  Raw<T, n, packs> unit, upstream, more, next_unit, next_upstream, next_more;
  float factor = 0, next_factor = 0;
  const auto load_next = [&](int row) {
    const std::int64_t begin = static_cast<std::int64_t>(row) * d;
    next_unit.load(row_of(x, row, shape), team.first, team.step, d);
    next_upstream.load(dy + begin, team.first, team.step, d);
    if (d_sum != nullptr) next_more.load(d_sum + begin, team.first, team.step, d);
    next_factor = inverse[row];
  };
  if (team.index < rows) load_next(team.index);
  for (int row = team.index; row < rows; row += teams) {
    unit = next_unit;
    upstream = next_upstream;
    more = next_more;
    factor = next_factor;
    if (row + teams < rows) load_next(row + teams);
    float along = 0;
#pragma unroll
    for (int k = 0; k < n * packs; ++k) {
      const float product = factor * unit[k] * upstream[k];
      d_gain.set(k, d_gain[k] + product);
      along += own[k] * product;
    }
    along = team.sum(along, parts) / static_cast<float>(d);
    Raw<T, n, packs> result;
#pragma unroll
    for (int k = 0; k < n * packs; ++k) {
      float value = factor * (own[k] * upstream[k] - factor * unit[k] * along);
      if (d_sum != nullptr) value += more[k];
      result.set(k, value);
    }
    result.save(dx + static_cast<std::int64_t>(row) * d, team.first, team.step, d);
  }
  if (gain_partials != nullptr)
    d_gain.save(gain_partials + static_cast<std::int64_t>(team.index) * d, team.first, team.step, d);
}

// Calls run(n, packs, several) as constants.
template <class T, class Run>
void with_layout(const Layout& layout, Run run) {
  constexpr int most = 16 / sizeof(T);
  const auto with_packs = [&](auto n, auto several, auto... packs) {
    bool done = false;
    ((!done && layout.packs <= packs ? (run(n, packs, several), done = true) : done), ...);
  };
  using std::bool_constant, std::integral_constant;
  constexpr integral_constant<int, 1> one;
  constexpr integral_constant<int, 2> two;
  constexpr integral_constant<int, 4> four;
  if (layout.n == most && layout.warps > 1)
    with_packs(integral_constant<int, most>(), bool_constant<true>(), one, two, four);
  else if (layout.n == most)
    with_packs(integral_constant<int, most>(), bool_constant<false>(), one, two, four);
  else if (layout.n == 2)
    with_packs(two, bool_constant<false>(), one, two, four);
  else
    with_packs(one, bool_constant<false>(), one, two, four);
}

// As many teams as fill the GPU, a multiple of the number of gains.
std::int64_t teams_of(const RmsNormShape& shape) {
  const std::int64_t gains = shape.gains > 0 ? shape.gains : 1;
  const Layout layout = shape.type == ElementType::f32 ? layout_of<float>(shape.d) : layout_of<__nv_bfloat16>(shape.d);
  const std::int64_t most = backward_warps / layout.warps, wanted = shape.rows < most ? shape.rows : most;
  return (wanted + gains - 1) / gains * gains;
}

struct Grid {
  unsigned blocks, threads;
};
Grid grid_of(std::int64_t teams, const Layout& layout) {
  if (layout.warps > 1) return {static_cast<unsigned>(teams), static_cast<unsigned>(layout.warps * warp_width)};
  return {static_cast<unsigned>((teams + rows_per_block - 1) / rows_per_block), rows_per_block * warp_width};
}

template <class T>
void launch_forward(const void* x, const void* delta, const float* gain, void* sum, void* y, float* inverse, float eps,
                    const RmsNormShape& shape, cudaStream_t stream) {
  const Layout layout = layout_of<T>(shape.d);
  const Grid grid = grid_of(shape.rows, layout);
  with_layout<T>(layout, [&](auto n, auto packs, auto several) {
    forward<T, n, packs, several><<<grid.blocks, grid.threads, 0, stream>>>(
        static_cast<const T*>(x), static_cast<const T*>(delta), gain, static_cast<T*>(sum), static_cast<T*>(y), inverse,
        eps, shape);
  });
}

template <class T>
void launch_backward(const void* x, const float* gain, const float* inverse, const void* dy, const void* d_sum, void* dx,
                     float* gain_partials, const RmsNormShape& shape, cudaStream_t stream) {
  const Layout layout = layout_of<T>(shape.d);
  const std::int64_t teams = teams_of(shape);
  const Grid grid = grid_of(teams, layout);
  with_layout<T>(layout, [&](auto n, auto packs, auto several) {
    backward<T, n, packs, several><<<grid.blocks, grid.threads, 0, stream>>>(
        static_cast<const T*>(x), gain, inverse, static_cast<const T*>(dy), static_cast<const T*>(d_sum),
        static_cast<T*>(dx), gain_partials, static_cast<int>(teams), shape);
  });
}

template <class T>
bool has_layout(int d) {
  const Layout layout = layout_of<T>(d);
  return layout.n * sizeof(T) == 16 ? d <= widest : layout.warps == 1 && layout.packs <= 4;
}

}  // namespace

bool supports_rms_norm(int d, ElementType type) {
  return d >= warp_width && (type == ElementType::f32 ? has_layout<float>(d) : has_layout<__nv_bfloat16>(d));
}

void rms_norm_forward(const void* x, const void* delta, const float* gain, void* sum, void* y, float* inverse, float eps,
                      const RmsNormShape& shape, cudaStream_t stream) {
  if (shape.rows == 0) return;
  if (shape.type == ElementType::f32)
    launch_forward<float>(x, delta, gain, sum, y, inverse, eps, shape, stream);
  else
    launch_forward<__nv_bfloat16>(x, delta, gain, sum, y, inverse, eps, shape, stream);
}

std::int64_t rms_norm_partials(const RmsNormShape& shape) {
  return shape.gains > 0 ? teams_of(shape) / shape.gains : 0;
}

void rms_norm_backward(const void* x, const float* gain, const float* inverse, const void* dy, const void* d_sum,
                       void* dx, float* gain_partials, const RmsNormShape& shape, cudaStream_t stream) {
  if (shape.rows == 0) return;
  if (shape.type == ElementType::f32)
    launch_backward<float>(x, gain, inverse, dy, d_sum, dx, gain_partials, shape, stream);
  else
    launch_backward<__nv_bfloat16>(x, gain, inverse, dy, d_sum, dx, gain_partials, shape, stream);
}

}  // namespace headscope::cuda
