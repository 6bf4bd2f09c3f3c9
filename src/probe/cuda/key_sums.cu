// Reads the keys once (8 MB for 16384 tokens of 4 heads of 64 in bfloat16: 2 µs of memory). A block takes a chunk of
// tokens of one head. Eight of its warps sum: d / 8 lanes share a key, eight components each, so that a warp takes
// several keys at a time, about 170 instructions for 4 keys of 64. They leave the keys in shared memory, 64 at a time,
// of which the other eight warps make the Gram matrix meanwhile, by tensor cores in float64: 36 of 64 blocks of 8 x 8 are
// on or above the diagonal, 590,000 products of 8 x 8 x 4. A second kernel adds up what the chunks left (3 MB). An H200
// takes 36 µs for both, most of it waiting at barriers.
#include <cuda_runtime.h>

#include <type_traits>

#include "ops/cuda/elements.cuh"
#include "probe/cuda/key_sums.h"

namespace headscope::cuda {
namespace {

constexpr int warp = 32;
constexpr unsigned all_lanes = 0xffffffffu;
constexpr int warps = 8;  // that sum, and as many for the Gram matrix
constexpr int threads = warps * warp;
constexpr int per_lane = 8;       // components
constexpr int most_d = 128;
constexpr int staged_keys = 64;   // in shared memory at a time
constexpr int wanted_blocks = 128;  // no more than a Hopper GPU has multiprocessors

// In which a key is measured. That of bfloat16 values is off by less than 1e-6 then; sums over keys are float64.
template <class T>
using Real = std::conditional_t<std::is_same_v<T, float>, double, float>;

// The larger; NaN if one is.
__device__ double larger(double a, double b) { return a > b || isnan(a) ? a : b; }

__device__ int values_of(int d) { return key_scalars + key_vectors * d; }  // key_values

// Barriers of so many threads.
enum Barrier { all_warps = 1, summing_warps, gram_warps };
__device__ __forceinline__ void wait_for(Barrier barrier, int count) {
  asm volatile("bar.sync %0, %1;" ::"r"(static_cast<int>(barrier)), "r"(count) : "memory");
}

// How the keys of a head are shared out; `size` is d rounded up.
template <int size>
struct Layout {
  static constexpr int lanes = size / per_lane;      // of a key
  static constexpr int keys = warp / lanes;          // of a warp at a time
  static constexpr int pass = warps * keys;          // of a block at a time
  static constexpr int passes = staged_keys / pass;  // until as many are staged
  // The Gram matrix has blocks of 8 x 8. A warp takes rows of blocks c and last - c from the diagonal on, together
  // always as many; several groups of warps take different keys.
  static constexpr int blocks = size / 8, slots = blocks + 1, couples = blocks / 2, groups = warps / couples;
  static constexpr int gram_values = couples * slots * 64;
  // Doubles; 16 lanes that read at once 4 components of 4 keys find them in different banks.
  static constexpr int stride = size + 4;

  // The blocks' row and column of slot s of couple c.
  __device__ static int row(int c, int s) { return s < blocks - c ? c : blocks - 1 - c; }
  __device__ static int column(int c, int s) { return s < blocks - c ? c + s : s - 1; }
};

// Component j of a lane: pairs of neighbours, of which the lanes of a key read one after another.
template <int size>
__device__ __forceinline__ int component(int lane, int j) {
  constexpr int lanes = Layout<size>::lanes;
  return 2 * (lane % lanes) + j % 2 + 2 * lanes * (j / 2);
}

__device__ __forceinline__ float2 pair_at(const float* from) { return *reinterpret_cast<const float2*>(from); }
__device__ __forceinline__ float2 pair_at(const __nv_bfloat16* from) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(from));
}

// Token n of a head. Divisions cost as much as half of what is done with a vector.
template <class T>
__device__ __forceinline__ const T* vector_at(const T* head, unsigned n, const KeyShape& shape) {
  if (shape.flat) return head + n * shape.strides.token;
  const unsigned t = static_cast<unsigned>(shape.t);
  return head + n / t * shape.strides.sequence + n % t * shape.strides.token;
}

// The lane's components of token n of a head; 0 beyond d, and where the token is not `there`.
template <int size, class T>
__device__ __forceinline__ void load_key(float (&key)[per_lane], const T* head, unsigned n, bool there,
                                         const KeyShape& shape, int lane) {
  const T* from = vector_at(head, n, shape);
#pragma unroll
  for (int j = 0; j < per_lane; j += 2) {
    const int i = component<size>(lane, j);
    float2 pair = make_float2(0, 0);
    if (shape.pairs) {
      if (there && i < shape.d) pair = pair_at(from + i);
    } else {
      if (there && i < shape.d) pair.x = wide(from[i]);
      if (there && i + 1 < shape.d) pair.y = wide(from[i + 1]);
    }
    key[j] = pair.x;
    key[j + 1] = pair.y;
  }
}

// Over the lanes of a key, and over the keys of a warp.
template <int size, class Value>
__device__ __forceinline__ Value sum_of_key(Value value) {
#pragma unroll
  for (int offset = 1; offset < Layout<size>::lanes; offset *= 2) value += __shfl_xor_sync(all_lanes, value, offset);
  return value;
}
template <int size>
__device__ __forceinline__ float largest_of_key(float value) {
#pragma unroll
  for (int offset = 1; offset < Layout<size>::lanes; offset *= 2)
    value = fmaxf(value, __shfl_xor_sync(all_lanes, value, offset));
  return value;
}
template <int size>
__device__ __forceinline__ double sum_over_keys(double value) {
#pragma unroll
  for (int offset = Layout<size>::lanes; offset < warp; offset *= 2)
    value += __shfl_xor_sync(all_lanes, value, offset);
  return value;
}

// What a key is measured by, the same in all its lanes.
template <class Real>
struct Measures {
  Real norm, ratio;  // (Σ k²)² / Σ k⁴
  Real inverse;      // 1 / norm
  float top;         // largest |component|
};

// float32 would not hold squares of all values: they are taken of components times a power of two, exact, that makes
// the largest about 1.
template <int size, class Real>
__device__ __forceinline__ Measures<Real> measures_of(const float (&key)[per_lane]) {
  float top = 0;
#pragma unroll
  for (int j = 0; j < per_lane; ++j) top = fmaxf(top, fabsf(key[j]));
  top = largest_of_key<size>(top);
  Real scale = 1, back = 1;
  if constexpr (std::is_same_v<Real, float>) {
    const int exponent = min(max(254 - static_cast<int>(__float_as_uint(top) >> 23), 1), 253);
    scale = __uint_as_float(static_cast<unsigned>(exponent) << 23);
    back = __uint_as_float(static_cast<unsigned>(254 - exponent) << 23);
  }
  Real energy = 0, fourths = 0;
#pragma unroll
  for (int j = 0; j < per_lane; ++j) {
    const Real component = key[j] * scale, square = component * component;
    energy += square;
    fourths = fma(square, square, fourths);
  }
  energy = sum_of_key<size>(energy);
  fourths = sum_of_key<size>(fourths);
  const Real root = sqrt(energy);
  return {root * back, energy * energy / fourths, scale / root, top};
}

// Combines two partial results of value number v.
__device__ double combined(int v, double a, double b) {
  if (v == norm_shift || v == component_shift) return a;  // all have the same
  return v == largest_top ? larger(a, b) : a + b;
}

// What a thread sums. Scalars are the same in all lanes of a key, but for the sums of components. Energies are on the
// diagonal of the Gram matrix.
template <int size, class Real>
struct LaneSums {
  double norms = 0, norm_squares = 0, components = 0, component_squares = 0, token0_norms = 0, tops = 0, axes = 0,
         ratios = 0, largest_top = -INFINITY;
  Real units[per_lane] = {};
  float on_top[per_lane] = {}, alive = 0;  // counts

  __device__ __forceinline__ void add(const float (&key)[per_lane], bool there, bool is_first, double first_norm,
                                      Real first_component, int lane, int d) {
    const Measures<Real> of_key = measures_of<size, Real>(key);
    if (!there) return;
    Real shifts = 0, shift_squares = 0;
#pragma unroll
    for (int j = 0; j < per_lane; ++j) {
      const Real shifted = component<size>(lane, j) < d ? key[j] - first_component : Real(0);
      shifts += shifted;
      shift_squares = fma(shifted, shifted, shift_squares);
    }
    components += shifts;
    component_squares += shift_squares;
    const double norm = of_key.norm, largest = isnan(of_key.norm) ? norm : static_cast<double>(of_key.top);
    norms += norm - first_norm;
    norm_squares += (norm - first_norm) * (norm - first_norm);
    tops += largest;
    largest_top = larger(largest_top, largest);
    if (is_first) token0_norms += norm;
    if (!(norm > 0)) return;
    alive += 1;
    axes += largest * of_key.inverse;
    ratios += of_key.ratio;
#pragma unroll
    for (int j = 0; j < per_lane; ++j) {
      units[j] = fma(static_cast<Real>(key[j]), of_key.inverse, units[j]);
      if (fabsf(key[j]) == of_key.top) on_top[j] += 1;
    }
  }

  // Sums over the warp, into memory: key_values(d) doubles.
  __device__ void store(double* to, double first_norm, double first_component, int lane, int d) {
    double scalars[key_scalars];
    scalars[norm_shift] = first_norm;
    scalars[component_shift] = first_component;
    scalars[cuda::norms] = sum_over_keys<size>(norms);
    scalars[cuda::norm_squares] = sum_over_keys<size>(norm_squares);
    scalars[cuda::components] = sum_of_key<size>(sum_over_keys<size>(components));
    scalars[cuda::component_squares] = sum_of_key<size>(sum_over_keys<size>(component_squares));
    scalars[cuda::token0_norms] = sum_over_keys<size>(token0_norms);
    scalars[cuda::tops] = sum_over_keys<size>(tops);
#pragma unroll
    for (int offset = Layout<size>::lanes; offset < warp; offset *= 2)
      largest_top = larger(largest_top, __shfl_xor_sync(all_lanes, largest_top, offset));
    scalars[cuda::largest_top] = largest_top;
    scalars[cuda::axes] = sum_over_keys<size>(axes);
    scalars[cuda::ratios] = sum_over_keys<size>(ratios);
    scalars[cuda::alive] = sum_over_keys<size>(alive);
    if (lane == 0) {
#pragma unroll
      for (int v = 0; v < key_scalars; ++v) to[v] = scalars[v];
    }
#pragma unroll
    for (int j = 0; j < per_lane; ++j) {
      const int i = component<size>(lane, j);
      const double unit = sum_over_keys<size>(units[j]);
      const double count = sum_over_keys<size>(on_top[j]);
      if (lane >= Layout<size>::lanes || i >= d) continue;
      to[key_scalars + cuda::energies * d + i] = 0;  // add_chunks has them
      to[key_scalars + cuda::units * d + i] = unit;
      to[key_scalars + cuda::on_top * d + i] = count;
    }
  }
};

// The part of KᵀK that a warp has.
template <int size>
struct GramSums {
  using In = Layout<size>;
  double values[In::slots][2] = {};
  int couple = static_cast<int>(threadIdx.x) % threads / warp % In::couples;
  int group = static_cast<int>(threadIdx.x) % threads / warp / In::couples;

  // A fragment holds component lane / 4 of a block and key lane % 4, on the left and on the right alike.
  __device__ __forceinline__ void add(const double* staged, int lane) {
#pragma unroll(size > 64 ? 1 : 2)
    for (int four = group; four < staged_keys / 4; four += In::groups) {
      const double* keys = staged + (4 * four + lane % 4) * In::stride + lane / 4;
      const double upper = keys[8 * couple], lower = keys[8 * (In::blocks - 1 - couple)];
#pragma unroll
      for (int s = 0; s < In::slots; ++s) {
        const double left = s < In::blocks - couple ? upper : lower, right = keys[8 * In::column(couple, s)];
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+d"(values[s][0]), "+d"(values[s][1])
            : "d"(left), "d"(right));
      }
    }
  }

  // Adds up the groups in their order. The warps of the Gram matrix call it; memory: gram_values doubles.
  __device__ void store(double* to, double* memory, int lane) {
#pragma unroll 1
    for (int g = 0; g < In::groups; ++g) {
      if (group == g) {
#pragma unroll
        for (int s = 0; s < In::slots; ++s) {
          const int place = (couple * In::slots + s) * 64 + 2 * lane;  // row lane / 4, columns 2·(lane % 4) and next
          double2 sum = make_double2(values[s][0], values[s][1]);
          if (g > 0) {
            const double2 others = *reinterpret_cast<const double2*>(memory + place);
            sum = make_double2(others.x + sum.x, others.y + sum.y);
          }
          if (g < In::groups - 1) {
            *reinterpret_cast<double2*>(memory + place) = sum;
          } else {
            to[place] = sum.x;
            to[place + 1] = sum.y;
          }
        }
      }
      wait_for(gram_warps, threads);
    }
  }
};

// The tokens of a block.
struct Chunk {
  unsigned begin, end;
  __device__ Chunk(const KeyShape& shape, int size) {
    const auto n = static_cast<unsigned>(shape.n), most = static_cast<unsigned>(size);
    begin = blockIdx.x * most;
    end = n - begin < most ? n : begin + most;
  }
};

// Twice 64 keys: the Gram matrix is made of those before. The sums of warps and groups take no more at the end.
template <int size>
constexpr std::size_t shared_bytes() {
  static_assert(warps * key_values(size) <= staged_keys * Layout<size>::stride);
  static_assert(Layout<size>::groups == 1 || Layout<size>::gram_values <= staged_keys * Layout<size>::stride);
  return 2 * staged_keys * Layout<size>::stride * sizeof(double);
}

template <int size, class T>
__device__ void sum_keys(const T* keys, const KeyShape& shape, const Chunk& chunk, double* memory, double* out) {
  using In = Layout<size>;
  const int lane = static_cast<int>(threadIdx.x) % warp, own_warp = static_cast<int>(threadIdx.x) / warp, d = shape.d;
  constexpr int ahead = In::passes < 2 ? In::passes : 2;  // passes whose keys are on their way
  float key[per_lane], next[ahead][per_lane];
  load_key<size>(key, keys, 0, true, shape, lane);
  const double first_norm = measures_of<size, Real<T>>(key).norm;
  const Real<T> first_component = wide(keys[0]);
  LaneSums<size, Real<T>> sums;
  const auto own = static_cast<unsigned>(own_warp * In::keys + lane / In::lanes);  // key of a pass
#pragma unroll
  for (int pass = 0; pass < ahead; ++pass) {
    const unsigned place = chunk.begin + static_cast<unsigned>(pass * In::pass) + own;
    load_key<size>(next[pass], keys, place, place < chunk.end, shape, lane);
  }
  const auto t = static_cast<unsigned>(shape.t);
  int buffer = 0;
#pragma unroll 1
  for (unsigned stage = chunk.begin; stage < chunk.end; stage += staged_keys, buffer ^= 1) {
    double* staged = memory + buffer * staged_keys * In::stride;
    const bool has_first = (stage + staged_keys - 1) / t * t >= stage;  // of a sequence
#pragma unroll
    for (int pass = 0; pass < In::passes; ++pass) {
      const unsigned in_stage = static_cast<unsigned>(pass * In::pass) + own, place = stage + in_stage;
#pragma unroll
      for (int j = 0; j < per_lane; ++j) key[j] = next[pass % ahead][j];
      const unsigned later = place + static_cast<unsigned>(ahead * In::pass);
      load_key<size>(next[pass % ahead], keys, later, later < chunk.end, shape, lane);
#pragma unroll
      for (int j = 0; j < per_lane; j += 2)
        *reinterpret_cast<double2*>(staged + in_stage * In::stride + component<size>(lane, j)) =
            make_double2(key[j], key[j + 1]);
      sums.add(key, place < chunk.end, has_first && place % t == 0, first_norm, first_component, lane, d);
    }
    wait_for(all_warps, 2 * threads);
  }
  wait_for(all_warps, 2 * threads);
  const int values = values_of(d);
  sums.store(memory + own_warp * values, first_norm, first_component, lane, d);
  wait_for(summing_warps, threads);
  for (int v = static_cast<int>(threadIdx.x); v < values; v += threads) {
    double total = memory[v];
    for (int w = 1; w < warps; ++w) total = combined(v, total, memory[w * values + v]);
    out[v] = total;
  }
}

template <int size>
__device__ void multiply_keys(const Chunk& chunk, double* memory, double* out) {
  using In = Layout<size>;
  const int lane = static_cast<int>(threadIdx.x) % warp;
  GramSums<size> gram;
  int buffer = 0;
  for (unsigned stage = chunk.begin; stage < chunk.end; stage += staged_keys, buffer ^= 1) {
    wait_for(all_warps, 2 * threads);
    gram.add(memory + buffer * staged_keys * In::stride, lane);
  }
  wait_for(all_warps, 2 * threads);
  gram.store(out, memory + staged_keys * In::stride, lane);
}

template <class T, int size>
__global__ void __launch_bounds__(2 * threads, 1)
    add_keys(const T* __restrict__ k, KeyShape shape, int chunk_size, int partial_values,
             double* __restrict__ partials) {
  extern __shared__ __align__(16) double memory[];
  const int head = static_cast<int>(blockIdx.y);
  const Chunk chunk(shape, chunk_size);
  double* out = partials + (static_cast<std::int64_t>(blockIdx.x) * shape.heads + head) * partial_values;
  if (threadIdx.x < threads)
    sum_keys<size>(k + head * shape.strides.head, shape, chunk, memory, out);
  else
    multiply_keys<size>(chunk, memory, out + values_of(shape.d));
}

constexpr int sum_warps = 8;  // a thread for each value of each head, of every eighth chunk

__global__ void __launch_bounds__(sum_warps* warp)
    add_chunks(const double* __restrict__ partials, double* __restrict__ sums, std::int64_t chunks, int heads, int d,
               int size, int partial_values) {
  __shared__ double parts[sum_warps][warp];
  const int lane = static_cast<int>(threadIdx.x) % warp, group = static_cast<int>(threadIdx.x) / warp;
  const std::int64_t all = static_cast<std::int64_t>(heads) * partial_values;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * warp + lane;
  const int v = static_cast<int>(i % partial_values), head = static_cast<int>(i / partial_values);
  if (i < all && group < chunks) {
    double total = partials[group * all + i];
#pragma unroll 8
    for (std::int64_t c = group + sum_warps; c < chunks; c += sum_warps)
      total = combined(v, total, partials[c * all + i]);
    parts[group][lane] = total;
  }
  __syncthreads();
  if (group > 0 || i >= all) return;
  double total = parts[0][lane];
  for (int g = 1; g < sum_warps && g < chunks; ++g) total = combined(v, total, parts[g][lane]);
  const int values = values_of(d);
  const int first_energy = key_scalars + energies * d;
  if (v < values) {
    if (v < first_energy || v >= first_energy + d) sums[head * values + v] = total;
    return;
  }
  const int blocks = size / 8, slots = blocks + 1, block = (v - values) / 64, inside = (v - values) % 64;
  const int c = block / slots, s = block % slots;
  const bool upper = s < blocks - c;  // Layout::row and column
  const int row = 8 * (upper ? c : blocks - 1 - c) + inside / 8, column = 8 * (upper ? c + s : s - 1) + inside % 8;
  if (row >= d || column >= d) return;
  double* gram = sums + static_cast<std::int64_t>(heads) * values + static_cast<std::int64_t>(head) * d * d;
  gram[row * d + column] = total;
  if (row == column) sums[head * values + first_energy + row] = total;
  gram[column * d + row] = total;  // the other side; within a block of the diagonal the same value twice
}

constexpr int norm_warps = 16;
constexpr int norm_blocks = 256;  // two for each multiprocessor of a Hopper GPU
constexpr int batch = 4;          // vectors of a thread that are on their way at once

// Eight components one after another of each lane, 16 bytes at a time. Those from d on are 0.
template <class T>
__device__ __forceinline__ void load_packs(float (&vector)[per_lane], const T* from, bool there) {
  using Part = Pack<T, 16 / sizeof(T)>;
#pragma unroll
  for (int j = 0; j < per_lane; j += Part::size) {
    Part part{};
    if (there) part = *reinterpret_cast<const Part*>(from + j);
#pragma unroll
    for (int i = 0; i < Part::size; ++i) vector[j + i] = wide(part.values[i]);
  }
}

// Σ ‖x‖ of the vectors of a lane's group of lanes.
template <bool packs, int size, class T>
__device__ __forceinline__ double norms_of(const T* vectors, const KeyShape& shape, const Chunk& chunk, int lane,
                                           int own_warp) {
  using In = Layout<size>;
  constexpr unsigned pass = norm_warps * In::keys;
  const auto own = static_cast<unsigned>(own_warp * In::keys + lane / In::lanes);
  const int first = lane % In::lanes * per_lane;
  double sum = 0;
#pragma unroll 1
  for (unsigned stage = chunk.begin; stage < chunk.end; stage += batch * pass) {
    float vector[batch][per_lane];
#pragma unroll
    for (unsigned i = 0; i < batch; ++i) {
      const unsigned place = stage + i * pass + own;
      const bool there = place < chunk.end;
      if constexpr (packs)
        load_packs(vector[i], vector_at(vectors, there ? place : chunk.begin, shape) + first,
                   there && first < shape.d);
      else
        load_key<size>(vector[i], vectors, place, there, shape, lane);
    }
#pragma unroll
    for (int i = 0; i < batch; ++i) {
      Real<T> squares = 0;
#pragma unroll
      for (int j = 0; j < per_lane; ++j)
        squares = fma(static_cast<Real<T>>(vector[i][j]), static_cast<Real<T>>(vector[i][j]), squares);
      sum += sqrt(sum_of_key<size>(squares));
    }
  }
  return sum;
}

// Of 16 MB (16384 tokens of 8 heads of 64 in bfloat16): 4 µs of memory, less where the cache still has them.
template <class T, int size>
__global__ void __launch_bounds__(norm_warps* warp)
    add_norms(const T* __restrict__ x, KeyShape shape, int chunk_size, double* __restrict__ sums) {
  __shared__ double parts[norm_warps];
  const int lane = static_cast<int>(threadIdx.x) % warp, own_warp = static_cast<int>(threadIdx.x) / warp;
  const int head = static_cast<int>(blockIdx.y);
  const T* vectors = x + head * shape.strides.head;
  const Chunk chunk(shape, chunk_size);
  double sum = shape.packs ? norms_of<true, size>(vectors, shape, chunk, lane, own_warp)
                           : norms_of<false, size>(vectors, shape, chunk, lane, own_warp);
  sum = sum_over_keys<size>(sum);
  if (lane == 0) parts[own_warp] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  double total = parts[0];
  for (int w = 1; w < norm_warps; ++w) total += parts[w];
  sums[static_cast<std::int64_t>(blockIdx.x) * shape.heads + head] = total;
}

int size_of(int d) { return d <= 32 ? 32 : d <= 64 ? 64 : 128; }

std::int64_t chunk_of(const KeyShape& shape, int blocks) {
  const std::int64_t even = (shape.n * shape.heads + blocks - 1) / blocks;
  return (even + staged_keys - 1) / staged_keys * staged_keys;
}
std::int64_t chunks_of(const KeyShape& shape, int blocks) {
  return (shape.n + chunk_of(shape, blocks) - 1) / chunk_of(shape, blocks);
}
dim3 blocks_of(const KeyShape& shape, std::int64_t chunks) {
  return {static_cast<unsigned>(chunks), static_cast<unsigned>(shape.heads)};
}

// Calls launch(type, size) with a value of the type of elements and the layout.
template <class T, class Launch>
void with_size(int d, Launch&& launch) {
  if (size_of(d) == 32)
    launch(T(), Layout<32>());
  else if (size_of(d) == 64)
    launch(T(), Layout<64>());
  else
    launch(T(), Layout<128>());
}
template <class Launch>
void with_type_and_size(const KeyShape& shape, Launch&& launch) {
  if (shape.type == ElementType::f32)
    with_size<float>(shape.d, launch);
  else
    with_size<__nv_bfloat16>(shape.d, launch);
}

}  // namespace

bool supports_key_sums(int d) { return d >= 1 && d <= most_d; }

std::int64_t key_chunks(const KeyShape& shape) { return chunks_of(shape, wanted_blocks); }
std::int64_t norm_chunks(const KeyShape& shape) { return chunks_of(shape, norm_blocks); }

int key_partials(int d) {
  const int gram = size_of(d) == 32   ? Layout<32>::gram_values
                   : size_of(d) == 64 ? Layout<64>::gram_values
                                      : Layout<128>::gram_values;
  return key_values(d) + gram;
}

void key_sums(const void* k, const KeyShape& shape, double* partials, double* sums, cudaStream_t stream) {
  const int values = key_partials(shape.d);
  with_type_and_size(shape, [&](auto type, auto layout) {
    using T = decltype(type);
    constexpr int size = decltype(layout)::blocks * 8;
    const auto kernel = add_keys<T, size>;
    constexpr std::size_t bytes = shared_bytes<size>();
    // More than 48 KB is had on request only.
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    kernel<<<blocks_of(shape, key_chunks(shape)), 2 * threads, bytes, stream>>>(
        static_cast<const T*>(k), shape, static_cast<int>(chunk_of(shape, wanted_blocks)), values, partials);
  });
  const std::int64_t all = static_cast<std::int64_t>(shape.heads) * values;
  add_chunks<<<static_cast<unsigned>((all + warp - 1) / warp), sum_warps * warp, 0, stream>>>(
      partials, sums, key_chunks(shape), shape.heads, shape.d, size_of(shape.d), values);
}

void norm_sums(const void* x, const KeyShape& shape, double* sums, cudaStream_t stream) {
  with_type_and_size(shape, [&](auto type, auto layout) {
    using T = decltype(type);
    const dim3 blocks = blocks_of(shape, norm_chunks(shape));
    add_norms<T, decltype(layout)::blocks * 8><<<blocks, norm_warps * warp, 0, stream>>>(
        static_cast<const T*>(x), shape, static_cast<int>(chunk_of(shape, norm_blocks)), sums);
  });
}

}  // namespace headscope::cuda
