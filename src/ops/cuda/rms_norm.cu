// Bound by memory: forward reads x (and what is added to it) and writes y (and the sum); backward reads x and dy (and
// the gradient of the sum) and writes dx. A team of warps takes a row, whose elements stay in registers; rows of one gain
// go to the same team, which adds up that gain's gradient on the way.
#include <cuda_runtime.h>

#include <type_traits>

#include "ops/cuda/elements.cuh"
#include "ops/cuda/rms_norm.h"

namespace headscope::cuda {
namespace {

// One warp for a row of up to 1024 elements, four rows in a block; a block of several warps for longer ones.
constexpr int rows_per_block = 4;
constexpr int widest_of_a_warp = 1024, widest = 16384;
constexpr int elements_of_a_lane = 16;  // about, in a team of several warps
// Warps that fill a Hopper GPU of 132 multiprocessors; more would only make more partial sums.
constexpr std::int64_t forward_warps = 132 * 32, backward_warps = 132 * 16;

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
  while (d > widest_of_a_warp && layout.warps * warp_width * elements_of_a_lane < d) layout.warps *= 2;
  layout.packs = (d / layout.n + layout.warps * warp_width - 1) / (layout.warps * warp_width);
  return layout;
}

// One row in registers: element j of pack i is values[i·n + j]; zero where the row has ended.
template <class T, int n, int packs>
struct Row {
  float values[packs * n];

  __device__ void load(const T* row, int first, int step, int d) {
#pragma unroll
    for (int i = 0; i < packs; ++i) {
      const int place = (first + i * step) * n;
      Pack<T, n> pack;
      if (place < d) pack = *reinterpret_cast<const Pack<T, n>*>(row + place);
#pragma unroll
      for (int j = 0; j < n; ++j) values[i * n + j] = place < d ? wide(pack.values[j]) : 0.0f;
    }
  }
  __device__ void save(T* row, int first, int step, int d) const {
#pragma unroll
    for (int i = 0; i < packs; ++i) {
      const int place = (first + i * step) * n;
      Pack<T, n> pack;
#pragma unroll
      for (int j = 0; j < n; ++j) store(&pack.values[j], values[i * n + j]);
      if (place < d) *reinterpret_cast<Pack<T, n>*>(row + place) = pack;
    }
  }
};

template <class T>
__device__ const T* row_of(const T* x, std::int64_t row, const RmsNormShape& shape) {
  return x + row / shape.inner * shape.outer_stride + row % shape.inner * shape.d;
}

// The warps that share a row: a warp alone, or a block.
template <bool several>
struct Team {
  int lane = threadIdx.x % warp_width, own_warp = threadIdx.x / warp_width;
  int first = several ? static_cast<int>(threadIdx.x) : lane;  // the first pack of this lane
  int step = several ? static_cast<int>(blockDim.x) : warp_width;    // from one pack to the next
  std::int64_t index = several ? blockIdx.x : static_cast<std::int64_t>(blockIdx.x) * rows_per_block + own_warp;
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

// Team number t of `teams` takes rows t, t + teams, …; their number is a multiple of the number of gains.
template <class T, int n, int packs, bool several>
__global__ void forward(const T* __restrict__ x, const T* __restrict__ delta, const float* __restrict__ gain,
                        T* __restrict__ sum, T* __restrict__ y, float* __restrict__ inverse, float eps,
                        std::int64_t teams, RmsNormShape shape) {
  __shared__ float parts[2 * warp_width];
  Team<several> team;
  const int d = shape.d;
  if (team.index >= teams) return;
  Row<float, n, packs> own;
  if (shape.gains > 0) own.load(gain + team.index % shape.gains * d, team.first, team.step, d);
  for (std::int64_t row = team.index; row < shape.rows; row += teams) {
    Row<T, n, packs> values;
    values.load(row_of(x, row, shape), team.first, team.step, d);
    if (delta != nullptr) {
      Row<T, n, packs> more;
      more.load(delta + row * d, team.first, team.step, d);
#pragma unroll
      for (int k = 0; k < n * packs; ++k) values.values[k] = rounded<T>(values.values[k] + more.values[k]);
      values.save(sum + row * d, team.first, team.step, d);
    }
    float squares = 0;
#pragma unroll
    for (int k = 0; k < n * packs; ++k) squares += values.values[k] * values.values[k];
    const float factor = rsqrtf(team.sum(squares, parts) / static_cast<float>(d) + eps);
#pragma unroll
    for (int k = 0; k < n * packs; ++k) values.values[k] *= shape.gains > 0 ? factor * own.values[k] : factor;
    values.save(y + row * d, team.first, team.step, d);
    if (team.first == 0) inverse[row] = factor;
  }
}

template <class T, int n, int packs, bool several>
__global__ void backward(const T* __restrict__ x, const float* __restrict__ gain, const float* __restrict__ inverse,
                         const T* __restrict__ dy, const T* d_sum, T* dx, float* __restrict__ gain_partials,
                         std::int64_t teams, RmsNormShape shape) {
  __shared__ float parts[2 * warp_width];
  Team<several> team;
  const int d = shape.d;
  if (team.index >= teams) return;
  Row<float, n, packs> own, d_gain;
#pragma unroll
  for (int k = 0; k < n * packs; ++k) {
    own.values[k] = 1;
    d_gain.values[k] = 0;
  }
  if (shape.gains > 0) own.load(gain + team.index % shape.gains * d, team.first, team.step, d);
  for (std::int64_t row = team.index; row < shape.rows; row += teams) {
    Row<T, n, packs> unit, upstream, more;
    unit.load(row_of(x, row, shape), team.first, team.step, d);
    upstream.load(dy + row * d, team.first, team.step, d);
    if (d_sum != nullptr) more.load(d_sum + row * d, team.first, team.step, d);
    const float factor = inverse[row];
    float along = 0;
#pragma unroll
    for (int k = 0; k < n * packs; ++k) {
      unit.values[k] *= factor;
      d_gain.values[k] += unit.values[k] * upstream.values[k];
      upstream.values[k] *= own.values[k];
      along += unit.values[k] * upstream.values[k];
    }
    along = team.sum(along, parts) / static_cast<float>(d);
#pragma unroll
    for (int k = 0; k < n * packs; ++k) {
      upstream.values[k] = factor * (upstream.values[k] - unit.values[k] * along);
      if (d_sum != nullptr) upstream.values[k] += more.values[k];
    }
    upstream.save(dx + row * d, team.first, team.step, d);
  }
  if (gain_partials != nullptr) d_gain.save(gain_partials + team.index * d, team.first, team.step, d);
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
  constexpr integral_constant<int, 3> three;
  constexpr integral_constant<int, 4> four;
  constexpr integral_constant<int, 8> eight;
  if (layout.n == most && layout.warps > 1)
    with_packs(integral_constant<int, most>(), bool_constant<true>(), two, four);
  else if (layout.n == most)
    with_packs(integral_constant<int, most>(), bool_constant<false>(), one, two, three, four, eight);
  else if (layout.n == 2)
    with_packs(two, bool_constant<false>(), one, two, four);
  else
    with_packs(one, bool_constant<false>(), one, two, four);
}

// As many teams as fill the GPU, a multiple of the number of gains.
std::int64_t teams_of(const RmsNormShape& shape, std::int64_t warps) {
  const std::int64_t gains = shape.gains > 0 ? shape.gains : 1;
  const Layout layout = shape.type == ElementType::f32 ? layout_of<float>(shape.d) : layout_of<__nv_bfloat16>(shape.d);
  const std::int64_t wanted = shape.rows < warps / layout.warps ? shape.rows : warps / layout.warps;
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
  const std::int64_t teams = teams_of(shape, forward_warps);
  const Grid grid = grid_of(teams, layout);
  with_layout<T>(layout, [&](auto n, auto packs, auto several) {
    forward<T, n, packs, several><<<grid.blocks, grid.threads, 0, stream>>>(
        static_cast<const T*>(x), static_cast<const T*>(delta), gain, static_cast<T*>(sum), static_cast<T*>(y), inverse,
        eps, teams, shape);
  });
}

template <class T>
void launch_backward(const void* x, const float* gain, const float* inverse, const void* dy, const void* d_sum, void* dx,
                     float* gain_partials, const RmsNormShape& shape, cudaStream_t stream) {
  const Layout layout = layout_of<T>(shape.d);
  const std::int64_t teams = teams_of(shape, backward_warps);
  const Grid grid = grid_of(teams, layout);
  with_layout<T>(layout, [&](auto n, auto packs, auto several) {
    backward<T, n, packs, several><<<grid.blocks, grid.threads, 0, stream>>>(
        static_cast<const T*>(x), gain, inverse, static_cast<const T*>(dy), static_cast<const T*>(d_sum),
        static_cast<T*>(dx), gain_partials, teams, shape);
  });
}

template <class T>
bool has_layout(int d) {
  const Layout layout = layout_of<T>(d);
  return layout.n * sizeof(T) == 16 ? d <= widest : layout.packs <= 4;
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
  return shape.gains > 0 ? teams_of(shape, backward_warps) / shape.gains : 0;
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
