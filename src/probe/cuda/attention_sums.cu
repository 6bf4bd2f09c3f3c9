// Kernels over tiles of 128 rows (queries) and 128 columns (keys) on and below the diagonal:
//   log_sums   (row tile, head, sequence), loops over column tiles: log Σ exp of each row, where attention left none
//   tile_pairs (row tile, column tile, head), loops over sequences: scores, hence attention p; Σ p·log2 p of rows, what
//              keys receive, and the same of the row's mean over sequences
//   positions  (tile, head): adds up what tile_pairs left of each position
//   seed       (head, sequence): one tile without a mask
// For 8 x 2048 tokens and 8 heads of 64, tile_pairs takes 134 M scores (143 M with those that are masked). Tensor cores
// need 28 µs for them (17 GFLOP), exp 35 µs (16 a clock and multiprocessor), the eight instructions of a score 36 µs,
// shared memory 36 µs (8 bytes of fragments for each score), the second-level cache 50 µs (32 KB for each of 8704
// tiles). Warps overlap them in part: about 90 µs. log_sums takes about 70 µs.
//
// 16 warps share a tile, 32 keys and 32 queries each. Scores are those of keys (rows of a fragment) with queries
// (columns), since what a key receives is wanted for each sequence, but what belongs to a query only summed over them:
// the first is then summed within a thread.
#include <cuda_runtime.h>

#include "ops/cuda/elements.cuh"
#include "probe/cuda/attention_sums.h"

namespace headscope::cuda {
namespace {

constexpr int warp = 32;
constexpr unsigned all_lanes = 0xffffffffu;
constexpr int tile = 128;
constexpr int sides = 4;                  // warps along keys, and along queries
constexpr int warp_side = tile / sides;   // keys, and queries
constexpr int warps = sides * sides;
constexpr int threads = warps * warp;
constexpr int key_parts = warp_side / 16, query_parts = warp_side / 8;  // fragments of 16 keys and 8 queries
constexpr float masked = -1e30f;  // finite, so that exp(masked)·masked is 0
constexpr float log2_e = 1.4426950408889634f;
constexpr double ln_2 = 0.6931471805599453;

// Scores of a thread: element 2·half + j of [key part][query part] is that of key 16·part + 8·half + lane / 4 with
// query 8·part + 2·(lane % 4) + j.
using Scores = float[key_parts][query_parts][4];

struct Place {
  int lane = static_cast<int>(threadIdx.x) % warp;
  int key_side = static_cast<int>(threadIdx.x) / warp / sides;
  int query_side = static_cast<int>(threadIdx.x) / warp % sides;

  __device__ int key(int part, int half) const { return key_side * warp_side + 16 * part + 8 * half + lane / 4; }
  __device__ int query(int part, int j) const { return query_side * warp_side + 8 * part + 2 * (lane % 4) + j; }
};

// Distance of vectors in shared memory: 16 bytes more than they take, so that those that lanes read at once lie in
// different banks.
template <class T>
__host__ __device__ constexpr int vector_stride(int d) {
  return d + 16 / static_cast<int>(sizeof(T));
}
template <class T>
__host__ __device__ constexpr std::size_t vector_bytes(int d) {
  return static_cast<std::size_t>(tile) * vector_stride<T>(d) * sizeof(T);
}

// Copies that go on while the thread computes.
__device__ __forceinline__ unsigned shared_address(const void* place) {
  return static_cast<unsigned>(__cvta_generic_to_shared(place));
}
__device__ __forceinline__ void begin_copy_16(void* to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
               "l"(__cvta_generic_to_global(from)), "r"(there ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void begin_copy_4(void* to, const void* from, bool there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)),
               "l"(__cvta_generic_to_global(from)), "r"(there ? 4 : 0)
               : "memory");
}
__device__ __forceinline__ void end_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// 128 vectors of d, `stride` elements apart, into shared memory; those from `count` on are zero.
template <class T>
__device__ __forceinline__ void begin_load(T* to, const T* from, std::int64_t stride, std::int64_t count, int d) {
  constexpr int n = 16 / static_cast<int>(sizeof(T));
  const int packs = d / n;
  for (int i = static_cast<int>(threadIdx.x); i < tile * packs; i += threads) {
    const int row = i / packs, column = i % packs * n;
    const bool there = row < count;
    begin_copy_16(to + row * vector_stride<T>(d) + column, from + (there ? row : 0) * stride + column, there);
  }
}

__device__ __forceinline__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// q·k, all kernels by the same instructions, so that all see the same scores.
__device__ __forceinline__ void score(Scores& s, const float* keys, const float* queries, int d, const Place& place) {
  const int stride = vector_stride<float>(d);
  const float* key = keys + place.key(0, 0) * stride;
  const float* query = queries + place.query(0, 0) * stride;
#pragma unroll
  for (int m = 0; m < key_parts; ++m)
#pragma unroll
    for (int n = 0; n < query_parts; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) s[m][n][e] = 0;
#pragma unroll 1
  for (int i = 0; i < d; i += 4) {
    float4 k[key_parts][2];
#pragma unroll
    for (int m = 0; m < key_parts; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        k[m][half] = *reinterpret_cast<const float4*>(key + (16 * m + 8 * half) * stride + i);
#pragma unroll
    for (int n = 0; n < query_parts; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const float4 q = *reinterpret_cast<const float4*>(query + (8 * n + j) * stride + i);
#pragma unroll
        for (int m = 0; m < key_parts; ++m)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            float& sum = s[m][n][2 * half + j];
            sum = fmaf(k[m][half].x, q.x, sum);
            sum = fmaf(k[m][half].y, q.y, sum);
            sum = fmaf(k[m][half].z, q.z, sum);
            sum = fmaf(k[m][half].w, q.w, sum);
          }
      }
    }
  }
}

// Four 8 x 8 matrices of bfloat16, whose rows the lanes of each quarter of the warp point to.
__device__ __forceinline__ void load_matrices(unsigned (&to)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}
__device__ __forceinline__ void multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Products of bfloat16 values are exact in float32, in which tensor cores add them up.
__device__ __forceinline__ void score(Scores& s, const __nv_bfloat16* keys, const __nv_bfloat16* queries, int d,
                                      const Place& place) {
  const int stride = vector_stride<__nv_bfloat16>(d), lane = place.lane;
  // Of keys: rows 0-7 and 8-15 of the first 8 columns, then of the next 8. Of queries: 8 and 8 columns of rows 0-7,
  // then of rows 8-15, two parts.
  const unsigned key = shared_address(keys + (place.key_side * warp_side + lane % 16) * stride + lane / 16 * 8);
  const unsigned query =
      shared_address(queries + (place.query_side * warp_side + lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8);
  const unsigned sixteen_rows = 16 * stride * static_cast<unsigned>(sizeof(__nv_bfloat16));
#pragma unroll
  for (int m = 0; m < key_parts; ++m)
#pragma unroll
    for (int n = 0; n < query_parts; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) s[m][n][e] = 0;
#pragma unroll
  for (int i = 0; i < d; i += 16) {
    const unsigned bytes = i * static_cast<unsigned>(sizeof(__nv_bfloat16));
    unsigned k[key_parts][4], q[query_parts / 2][4];
#pragma unroll
    for (int m = 0; m < key_parts; ++m) load_matrices(k[m], key + m * sixteen_rows + bytes);
#pragma unroll
    for (int n = 0; n < query_parts / 2; ++n) load_matrices(q[n], query + n * sixteen_rows + bytes);
#pragma unroll
    for (int m = 0; m < key_parts; ++m)
#pragma unroll
      for (int n = 0; n < query_parts; ++n)
        multiply_add(s[m][n], k[m], q[n / 2][n % 2 * 2], q[n / 2][n % 2 * 2 + 1]);
  }
}

// The vectors of a head of a sequence, from token `first` on.
template <class T>
__device__ const T* vectors_of(const T* x, const HeadStrides& strides, std::int64_t sequence, std::int64_t first,
                               int head) {
  return x + sequence * strides.sequence + first * strides.token + head * strides.head;
}
__device__ int key_head_of(int head, const AttentionShape& shape) { return head * shape.key_heads / shape.heads; }

__device__ int rows_of_tile(std::int64_t first_row, std::int64_t t) {
  return static_cast<int>(t - first_row < tile ? t - first_row : tile);
}

// Over the 8 lanes that have the same queries, and over the 4 that have the same keys.
__device__ __forceinline__ float sum_over_keys(float value) {
#pragma unroll
  for (int offset = 4; offset < warp; offset *= 2) value += __shfl_xor_sync(all_lanes, value, offset);
  return value;
}
__device__ __forceinline__ float largest_over_keys(float value) {
#pragma unroll
  for (int offset = 4; offset < warp; offset *= 2) value = fmaxf(value, __shfl_xor_sync(all_lanes, value, offset));
  return value;
}
__device__ __forceinline__ float sum_over_queries(float value) {
  value += __shfl_xor_sync(all_lanes, value, 1);
  return value + __shfl_xor_sync(all_lanes, value, 2);
}
__device__ __forceinline__ float sum_over_warp(float value) { return sum_over_queries(sum_over_keys(value)); }
__device__ __forceinline__ float largest_of_warp(float value) {
  value = largest_over_keys(value);
  value = fmaxf(value, __shfl_xor_sync(all_lanes, value, 1));
  return fmaxf(value, __shfl_xor_sync(all_lanes, value, 2));
}

// Which scores of a tile count: all rows up to `rows`, and in a tile on the diagonal keys up to the query.
struct Mask {
  int rows;
  bool diagonal;
  __device__ bool shows(int key, int query) const { return key <= (diagonal ? query : tile) && query < rows; }
};

// Σ exp2 of a thread's scores, relative to the largest. `edge`: some of them do not count.
template <bool edge>
__device__ __forceinline__ void add_exponentials(float (&top)[query_parts][2], float (&sum)[query_parts][2],
                                                 const Scores& s, float factor, const Mask& mask, const Place& place) {
#pragma unroll
  for (int n = 0; n < query_parts; ++n)
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      float y[key_parts][2], largest = top[n][j];
#pragma unroll
      for (int m = 0; m < key_parts; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const bool shown = !edge || mask.shows(place.key(m, half), place.query(n, j));
          y[m][half] = shown ? s[m][n][2 * half + j] * factor : 2 * masked;
          largest = fmaxf(largest, y[m][half]);
        }
      float total = sum[n][j] * exp2_of(top[n][j] - largest);
#pragma unroll
      for (int m = 0; m < key_parts; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) total += exp2_of(y[m][half] - largest);
      sum[n][j] = total;
      top[n][j] = largest;
    }
}

// [queries | keys | keys of the next tile]
template <class T, int fixed_d>
__global__ void __launch_bounds__(threads, 1)
    log_sums(const T* __restrict__ q, const T* __restrict__ k, AttentionShape shape, float* __restrict__ log_sum,
             int tiles, int stages) {
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ float tops[sides][tile], sums[sides][tile];
  const int d = fixed_d > 0 ? fixed_d : shape.d;
  const auto block = static_cast<std::int64_t>(blockIdx.x);
  const int head = static_cast<int>(block % shape.heads);
  const std::int64_t sequence = block / shape.heads % shape.b;
  const int row_tile = tiles - 1 - static_cast<int>(block / shape.heads / shape.b);  // the longest first
  const std::int64_t first_row = static_cast<std::int64_t>(row_tile) * tile;
  const int rows = rows_of_tile(first_row, shape.t);
  const Place place;
  const float factor = shape.scale * log2_e;
  T* queries = reinterpret_cast<T*>(memory);
  const auto keys_of = [&](int column_tile) {
    return reinterpret_cast<T*>(memory + vector_bytes<T>(d) * (1 + (column_tile & (stages - 1))));
  };
  const auto load_keys = [&](int column_tile) {
    const std::int64_t first_column = static_cast<std::int64_t>(column_tile) * tile;
    begin_load(keys_of(column_tile), vectors_of(k, shape.k, sequence, first_column, key_head_of(head, shape)),
               shape.k.token, shape.t - first_column, d);
  };
  begin_load(queries, vectors_of(q, shape.q, sequence, first_row, head), shape.q.token, rows, d);
  load_keys(0);
  float top[query_parts][2], sum[query_parts][2];
#pragma unroll
  for (int n = 0; n < query_parts; ++n)
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      top[n][j] = masked;
      sum[n][j] = 0;
    }
  for (int column_tile = 0; column_tile <= row_tile; ++column_tile) {
    end_copies();
    __syncthreads();  // all have copied, and are done with the tile before
    if (stages > 1 && column_tile < row_tile) load_keys(column_tile + 1);
    const Mask mask{rows, column_tile == row_tile};
    if (!(mask.diagonal && place.key_side > place.query_side)) {
      Scores s;
      score(s, keys_of(column_tile), queries, d, place);
      if (mask.diagonal || rows < tile)
        add_exponentials<true>(top, sum, s, factor, mask, place);
      else
        add_exponentials<false>(top, sum, s, factor, mask, place);
    }
    if (stages == 1 && column_tile < row_tile) {
      __syncthreads();
      load_keys(column_tile + 1);
    }
  }
#pragma unroll
  for (int n = 0; n < query_parts; ++n)
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const float largest = largest_over_keys(top[n][j]);
      const float total = sum_over_keys(sum[n][j] * exp2_of(top[n][j] - largest));
      if (place.lane >= 4) continue;
      tops[place.key_side][place.query(n, j)] = largest;
      sums[place.key_side][place.query(n, j)] = total;
    }
  __syncthreads();
  const int row = static_cast<int>(threadIdx.x);
  if (row >= rows) return;
  float largest = tops[0][row], total = 0;
#pragma unroll
  for (int side = 1; side < sides; ++side) largest = fmaxf(largest, tops[side][row]);
#pragma unroll
  for (int side = 0; side < sides; ++side) total += sums[side][row] * exp2_of(tops[side][row] - largest);
  log_sum[(sequence * shape.heads + head) * shape.t + first_row + row] =
      static_cast<float>((static_cast<double>(largest) + log2f(total)) * ln_2);
}

// What a thread sums over sequences.
struct PairSums {
  float mean[key_parts][query_parts][4] = {};  // Σ p
  float products[query_parts][2] = {};         // Σ p·log2 p of a query
  float top = -INFINITY, self = 0, previous = 0;
};

// What it looks for in a tile.
struct Special {
  bool corner;   // the thread has the last key of its warp before the first query of its warp: the token before it
  float* first;  // where p of the first token to itself goes; null: it is elsewhere
};

// received: of the keys of the thread. `edge`: some of the scores do not count.
template <bool edge>
__device__ __forceinline__ void add_scores(PairSums& sums, float (&received)[key_parts][2], const Scores& s,
                                           const float* log_sum, float factor, const Mask& mask, const Place& place,
                                           const Special& special) {
#pragma unroll
  for (int n = 0; n < query_parts; ++n) {
    const float2 pair = *reinterpret_cast<const float2*>(log_sum + place.query(n, 0));
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const float less = -log2_e * (j == 0 ? pair.x : pair.y);
#pragma unroll
      for (int m = 0; m < key_parts; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int key = place.key(m, half), query = place.query(n, j);
          const float value = s[m][n][2 * half + j];
          const bool shown = !edge || mask.shows(key, query);
          const float x = shown ? fmaf(value, factor, less) : masked, p = exp2_of(x);
          sums.top = shown ? fmaxf(sums.top, value) : sums.top;
          sums.mean[m][n][2 * half + j] += p;
          sums.products[n][j] = fmaf(p, x, sums.products[n][j]);
          received[m][half] += p;
          if (edge && mask.diagonal) {
            if (key == query) sums.self += p;
            if (key + 1 == query) sums.previous += p;
          }
          if (m == key_parts - 1 && half == 1 && n == 0 && j == 0 && special.corner && !(edge && mask.diagonal))
            sums.previous += p;
          if (edge && m == 0 && half == 0 && n == 0 && j == 0 && special.first != nullptr) *special.first = p;
        }
    }
  }
}

// Pairs of tiles, those on the diagonal last: they are done sooner.
struct Pair {
  int row, column;
  __device__ Pair(std::int64_t index, int tiles) {
    const std::int64_t below = static_cast<std::int64_t>(tiles) * (tiles - 1) / 2;
    if (index >= below) {
      row = column = static_cast<int>(index - below);
      return;
    }
    const auto begin = [](int r) { return static_cast<std::int64_t>(r) * (r - 1) / 2; };
    row = static_cast<int>((1 + sqrtf(1 + 8 * static_cast<float>(index))) / 2);
    while (begin(row) > index) --row;
    while (begin(row + 1) <= index) ++row;
    column = static_cast<int>(index - begin(row));
  }
  __device__ std::int64_t place() const { return static_cast<std::int64_t>(row) * (row + 1) / 2 + column; }
};

// [queries | keys | log sums] of a sequence
template <class T>
__host__ __device__ constexpr std::size_t stage_bytes(int d) {
  return 2 * vector_bytes<T>(d) + tile * sizeof(float);
}

template <class T, int fixed_d>
__global__ void __launch_bounds__(threads, 1)
    tile_pairs(const T* __restrict__ q, const T* __restrict__ k, const float* __restrict__ log_sum,
               AttentionShape shape, AttentionScratch scratch, int tiles, int stages) {
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ float received[2][sides][tile];  // of this sequence and the one before
  __shared__ float of_rows[2][sides][tile];
  __shared__ float of_warps[3][warps];
  const int d = fixed_d > 0 ? fixed_d : shape.d, own = static_cast<int>(threadIdx.x);
  const int head = static_cast<int>(blockIdx.x % shape.heads);
  const Pair pair(blockIdx.x / shape.heads, tiles);
  const std::int64_t first_row = static_cast<std::int64_t>(pair.row) * tile;
  const std::int64_t first_column = static_cast<std::int64_t>(pair.column) * tile;
  const Place place;
  const Mask mask{rows_of_tile(first_row, shape.t), pair.row == pair.column};
  const float factor = shape.scale * log2_e;
  const int sequences = static_cast<int>(shape.b);
  const auto stage_of = [&](int sequence) { return memory + stage_bytes<T>(d) * (sequence & (stages - 1)); };
  const auto load = [&](int sequence) {
    unsigned char* stage = stage_of(sequence);
    begin_load(reinterpret_cast<T*>(stage), vectors_of(q, shape.q, sequence, first_row, head), shape.q.token, mask.rows,
               d);
    begin_load(reinterpret_cast<T*>(stage + vector_bytes<T>(d)),
               vectors_of(k, shape.k, sequence, first_column, key_head_of(head, shape)), shape.k.token,
               shape.t - first_column, d);
    const bool there = own < mask.rows;
    if (own < tile)
      begin_copy_4(stage + 2 * vector_bytes<T>(d) + own * sizeof(float),
                   log_sum + static_cast<std::int64_t>(sequence * shape.heads + head) * shape.t + first_row +
                       (there ? own : 0),
                   there);
  };
  const auto store_received = [&](int sequence) {
    if (own >= tile || first_column + own >= shape.t) return;
    const auto& parts = received[sequence % 2];
    float sum = 0;
#pragma unroll
    for (int side = 0; side < sides; ++side) sum += parts[side][own];
    scratch.received[((pair.row * shape.b + sequence) * shape.heads + head) * shape.t + first_column + own] = sum;
  };
  const bool hidden = mask.diagonal && place.key_side > place.query_side;
  const bool edge = (mask.diagonal && place.key_side == place.query_side) || mask.rows < tile;
  const bool before = mask.diagonal
                          ? place.query_side == place.key_side + 1
                          : pair.column + 1 == pair.row && place.key_side == sides - 1 && place.query_side == 0;
  const bool origin = pair.row == 0 && own == 0;
  PairSums sums;
  load(0);
  for (int sequence = 0; sequence < sequences; ++sequence) {
    end_copies();
    __syncthreads();  // all have copied, and are done with the sequence before
    if (stages > 1 && sequence + 1 < sequences) load(sequence + 1);
    if (sequence > 0) store_received(sequence - 1);
    const unsigned char* stage = stage_of(sequence);
    float of_keys[key_parts][2] = {};
    if (!hidden) {
      const auto* log_sums = reinterpret_cast<const float*>(stage + 2 * vector_bytes<T>(d));
      const Special special{before && place.lane == 28,
                            origin ? scratch.first + sequence * shape.heads + head : nullptr};
      Scores s;
      score(s, reinterpret_cast<const T*>(stage + vector_bytes<T>(d)), reinterpret_cast<const T*>(stage), d, place);
      if (edge)
        add_scores<true>(sums, of_keys, s, log_sums, factor, mask, place, special);
      else
        add_scores<false>(sums, of_keys, s, log_sums, factor, mask, place, special);
    }
#pragma unroll
    for (int m = 0; m < key_parts; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float sum = sum_over_queries(of_keys[m][half]);
        if (place.lane % 4 == 0) received[sequence % 2][place.query_side][place.key(m, half)] = sum;
      }
    if (stages == 1 && sequence + 1 < sequences) {
      __syncthreads();
      load(sequence + 1);
    }
  }
  const float share = 1.0f / static_cast<float>(shape.b);
#pragma unroll
  for (int n = 0; n < query_parts; ++n)
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      float of_mean = 0;
#pragma unroll
      for (int m = 0; m < key_parts; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float p = sums.mean[m][n][2 * half + j] * share;
          if (p != 0) of_mean = fmaf(p, __log2f(p), of_mean);
        }
      of_mean = sum_over_keys(of_mean);
      const float products = sum_over_keys(sums.products[n][j]);
      if (place.lane >= 4) continue;
      of_rows[0][place.key_side][place.query(n, j)] = products;
      of_rows[1][place.key_side][place.query(n, j)] = of_mean;
    }
  const float self = sum_over_warp(sums.self), previous = sum_over_warp(sums.previous);
  const float top = largest_of_warp(sums.top);
  if (place.lane == 0) {
    of_warps[0][own / warp] = self;
    of_warps[1][own / warp] = previous;
    of_warps[2][own / warp] = top;
  }
  __syncthreads();
  store_received(sequences - 1);
  if (own < mask.rows) {
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      float sum = 0;
#pragma unroll
      for (int side = 0; side < sides; ++side) sum += of_rows[which][side][own];
      const std::int64_t column = (static_cast<std::int64_t>(which) * shape.heads + head) * tiles + pair.column;
      scratch.rows[column * shape.t + first_row + own] = sum;
    }
  }
  if (own >= 3) return;
  float total = of_warps[own][0];
#pragma unroll
  for (int w = 1; w < warps; ++w) total = own == 2 ? fmaxf(total, of_warps[own][w]) : total + of_warps[own][w];
  scratch.pairs[(pair.place() * shape.heads + head) * 3 + own] = own == 2 ? total * shape.scale : total;
}

// HeadSums.
enum Value { entropy, entropy_norm, sink, previous, divergence, self, max_logit, profile_entropy };

// The larger; NaN if one is.
__device__ double larger(double a, double b) { return a > b || isnan(a) ? a : b; }
__device__ double combined(int value, double a, double b) { return value == max_logit ? larger(a, b) : a + b; }

constexpr int groups = 4;  // threads for each position: sequence s goes to thread s % groups
constexpr int position_threads = groups * tile;

__global__ void __launch_bounds__(position_threads)
    positions(AttentionShape shape, AttentionScratch scratch, double* __restrict__ sums) {
  __shared__ double parts[position_threads / warp][attention_values];
  const int own = static_cast<int>(blockIdx.x), tiles = static_cast<int>(gridDim.x);
  const int head = static_cast<int>(blockIdx.y);
  const int place = static_cast<int>(threadIdx.x) % tile, group = static_cast<int>(threadIdx.x) / tile;
  const std::int64_t i = static_cast<std::int64_t>(own) * tile + place, all = shape.b * shape.heads * shape.t;
  double values[attention_values] = {};
  values[max_logit] = -INFINITY;
  for (std::int64_t sequence = group; sequence < shape.b && i < shape.t; sequence += groups) {
    const std::int64_t at = (sequence * shape.heads + head) * shape.t + i;
    double received = 0;
#pragma unroll 8
    for (int row_tile = own; row_tile < tiles; ++row_tile) received += scratch.received[row_tile * all + at];
    const double p = received / static_cast<double>(shape.t);
    if (p != 0) values[profile_entropy] -= p * log(p);
    if (i == 0) values[sink] += received - scratch.first[sequence * shape.heads + head];
  }
  if (group == 0 && i < shape.t) {
    double of_rows = 0, of_mean = 0;
    const float* rows = scratch.rows + static_cast<std::int64_t>(head) * tiles * shape.t + i;
    const float* means = rows + static_cast<std::int64_t>(shape.heads) * tiles * shape.t;
#pragma unroll 4
    for (int column_tile = 0; column_tile <= own; ++column_tile) {
      of_rows -= rows[column_tile * shape.t];
      of_mean -= means[column_tile * shape.t];
    }
    const double total = of_rows < 0 ? 0 : of_rows * ln_2;  // NaN stays
    values[entropy] = total;
    if (i > 0) {
      const double widest = log(static_cast<double>(i + 1)), sequences = static_cast<double>(shape.b);
      const double between = of_mean * ln_2 - total / sequences;
      values[entropy_norm] = total / widest;
      values[divergence] = (between < 0 ? 0 : between) / fmin(log(sequences), widest);
    }
    // The largest score passes over NaN, the entropy does not.
    if (isnan(total)) values[max_logit] = total;
  }
#pragma unroll
  for (int v = 0; v < attention_values; ++v) {
#pragma unroll
    for (int offset = warp / 2; offset > 0; offset /= 2)
      values[v] = combined(v, values[v], __shfl_xor_sync(all_lanes, values[v], offset));
    if (threadIdx.x % warp == 0) parts[threadIdx.x / warp][v] = values[v];
  }
  __syncthreads();
  if (threadIdx.x >= attention_values) return;
  const int v = static_cast<int>(threadIdx.x);
  double total = parts[0][v];
  for (int w = 1; w < position_threads / warp; ++w) total = combined(v, total, parts[w][v]);
  if (v == self || v == previous || v == max_logit) {
    const int which = v == self ? 0 : v == previous ? 1 : 2;
    const std::int64_t first_pair = static_cast<std::int64_t>(own) * (own + 1) / 2;
    for (int column_tile = 0; column_tile <= own; ++column_tile) {
      const double of_pair = scratch.pairs[((first_pair + column_tile) * shape.heads + head) * 3 + which];
      total = v == max_logit && of_pair == INFINITY ? of_pair : combined(v, total, of_pair);
    }
  }
  sums[(static_cast<std::int64_t>(own) * shape.heads + head) * attention_values + v] = total;
}

template <class T, int fixed_d>
__global__ void __launch_bounds__(threads, 1)
    seed(const T* __restrict__ q, const T* __restrict__ k, AttentionShape shape, double* __restrict__ entropies) {
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ float tops[sides][tile], sums[sides][tile], products[sides][tile];
  __shared__ double of_warps[tile / warp];
  const int d = fixed_d > 0 ? fixed_d : shape.d, own = static_cast<int>(threadIdx.x);
  const int head = static_cast<int>(blockIdx.x), n_rows = rows_of_tile(0, shape.t);
  const std::int64_t sequence = blockIdx.y;
  const Place place;
  const float factor = shape.scale * log2_e;
  T *queries = reinterpret_cast<T*>(memory), *keys = reinterpret_cast<T*>(memory + vector_bytes<T>(d));
  begin_load(queries, vectors_of(q, shape.q, sequence, 0, head), shape.q.token, n_rows, d);
  begin_load(keys, vectors_of(k, shape.k, sequence, 0, key_head_of(head, shape)), shape.k.token, n_rows, d);
  end_copies();
  __syncthreads();
  Scores s;
  score(s, keys, queries, d, place);
#pragma unroll
  for (int n = 0; n < query_parts; ++n)
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      float top = 2 * masked;
#pragma unroll
      for (int m = 0; m < key_parts; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float& y = s[m][n][2 * half + j];
          y = place.key(m, half) < n_rows ? y * factor : 2 * masked;
          top = fmaxf(top, y);
        }
      top = largest_over_keys(top);
      if (place.lane < 4) tops[place.key_side][place.query(n, j)] = top;
    }
  __syncthreads();
#pragma unroll
  for (int n = 0; n < query_parts; ++n)
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int query = place.query(n, j);
      float top = tops[0][query], sum = 0, product = 0;
#pragma unroll
      for (int side = 1; side < sides; ++side) top = fmaxf(top, tops[side][query]);
#pragma unroll
      for (int m = 0; m < key_parts; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float x = s[m][n][2 * half + j] - top, e = exp2_of(x);
          sum += e;
          product = fmaf(e, x, product);
        }
      sum = sum_over_keys(sum);
      product = sum_over_keys(product);
      if (place.lane >= 4) continue;
      sums[place.key_side][query] = sum;
      products[place.key_side][query] = product;
    }
  __syncthreads();
  if (own < tile) {
    double sum = 0, product = 0;
#pragma unroll
    for (int side = 0; side < sides; ++side) {
      sum += sums[side][own];
      product += products[side][own];
    }
    double total = own < n_rows ? (log2(sum) - product / sum) * ln_2 : 0;
#pragma unroll
    for (int offset = warp / 2; offset > 0; offset /= 2) total += __shfl_xor_sync(all_lanes, total, offset);
    if (place.lane == 0) of_warps[own / warp] = total;
  }
  __syncthreads();
  if (own > 0) return;
  double total = 0;
#pragma unroll
  for (int w = 0; w < tile / warp; ++w) total += of_warps[w];
  entropies[head * shape.b + sequence] = total;
}

// Shared memory that a block may have from compute capability 8.0 on, less what is declared above. One stage is enough
// to compute, two let copies overlap.
constexpr std::size_t most_bytes = (163 << 10) - (9 << 10);

template <class Kernel>
void allow_bytes(Kernel* kernel, std::size_t bytes) {  // more than 48 KB is had on request only
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
}

unsigned tiles_of(const AttentionShape& shape) { return static_cast<unsigned>(attention_tiles(shape.t)); }

// Calls launch(type, d) with a value of the type of elements, and d where it is known to the compiler, else 0.
template <int d>
struct KnownSize {
  static constexpr int value = d;
};
template <class Launch>
void with_type_and_size(const AttentionShape& shape, Launch&& launch) {
  if (shape.type == ElementType::f32)
    launch(float(), KnownSize<0>());
  else if (shape.d == 32)
    launch(__nv_bfloat16(), KnownSize<32>());
  else if (shape.d == 64)
    launch(__nv_bfloat16(), KnownSize<64>());
  else if (shape.d == 128)
    launch(__nv_bfloat16(), KnownSize<128>());
  else
    launch(__nv_bfloat16(), KnownSize<0>());
}

}  // namespace

bool supports_attention_sums(int d, ElementType type) {
  return d >= 16 && d % 16 == 0 && d <= (type == ElementType::f32 ? 128 : 256);
}

std::int64_t attention_tiles(std::int64_t t) { return (t + tile - 1) / tile; }

void attention_log_sums(const void* q, const void* k, const AttentionShape& shape, float* log_sum,
                        cudaStream_t stream) {
  with_type_and_size(shape, [&](auto type, auto size) {
    using T = decltype(type);
    const auto kernel = log_sums<T, decltype(size)::value>;
    const int stages = 3 * vector_bytes<T>(shape.d) <= most_bytes ? 2 : 1;
    const std::size_t bytes = (1 + stages) * vector_bytes<T>(shape.d);
    const unsigned blocks = tiles_of(shape) * static_cast<unsigned>(shape.heads * shape.b);
    allow_bytes(kernel, bytes);
    kernel<<<blocks, threads, bytes, stream>>>(static_cast<const T*>(q), static_cast<const T*>(k), shape, log_sum,
                                               static_cast<int>(tiles_of(shape)), stages);
  });
}

void attention_sums(const void* q, const void* k, const float* log_sum, const AttentionShape& shape,
                    const AttentionScratch& scratch, double* sums, cudaStream_t stream) {
  with_type_and_size(shape, [&](auto type, auto size) {
    using T = decltype(type);
    const auto kernel = tile_pairs<T, decltype(size)::value>;
    const int stages = 2 * stage_bytes<T>(shape.d) <= most_bytes ? 2 : 1;
    const std::size_t bytes = stages * stage_bytes<T>(shape.d);
    const auto blocks = static_cast<unsigned>(attention_pairs(shape.t) * shape.heads);
    allow_bytes(kernel, bytes);
    kernel<<<blocks, threads, bytes, stream>>>(static_cast<const T*>(q), static_cast<const T*>(k), log_sum, shape,
                                               scratch, static_cast<int>(tiles_of(shape)), stages);
  });
  positions<<<dim3(tiles_of(shape), static_cast<unsigned>(shape.heads)), position_threads, 0, stream>>>(shape, scratch,
                                                                                                        sums);
}

void seed_entropies(const void* q, const void* k, const AttentionShape& shape, double* sums, cudaStream_t stream) {
  static_assert(tile == seed_rows);
  with_type_and_size(shape, [&](auto type, auto size) {
    using T = decltype(type);
    const auto kernel = seed<T, decltype(size)::value>;
    const std::size_t bytes = 2 * vector_bytes<T>(shape.d);
    allow_bytes(kernel, bytes);
    const dim3 blocks(static_cast<unsigned>(shape.heads), static_cast<unsigned>(shape.b));
    kernel<<<blocks, threads, bytes, stream>>>(static_cast<const T*>(q), static_cast<const T*>(k), shape, sums);
  });
}

}  // namespace headscope::cuda
