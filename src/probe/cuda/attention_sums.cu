// Kernels over tiles of 128 rows (queries) and 128 columns (keys) on and below the diagonal:
//   log_sums   (row tile, head, sequence), loops over column tiles: log Σ exp of each row, where attention left none
//   tile_pairs (row tile, column tile, head), loops over sequences: scores, hence attention p; Σ p·log2 p of rows, what
//              keys receive, and the same of the row's mean over sequences; hopper_pairs.cu has a faster one
//   positions  (tile, head): adds up what tile_pairs left of each position
//   seed       (head, sequence): one tile without a mask
// 16 warps share a tile, 32 keys and 32 queries each. Products are those of float32 units, or of tensor cores for
// bfloat16.
#include "probe/cuda/attention_sums.h"

#include "probe/cuda/attention_tiles.cuh"
#include "probe/cuda/hopper_pairs.h"

namespace headscope::cuda {
namespace {

constexpr int warp = warp_width;
constexpr int sides = 4;                 // warps along keys, and along queries
constexpr int warp_side = tile / sides;  // keys, and queries
using Place = PlaceOf<warp_side, warp_side>;
constexpr int threads = Place::threads;
constexpr int key_parts = Place::key_parts, query_parts = Place::query_parts;
constexpr double ln_2 = 0.6931471805599453;

using Scores = float[key_parts][query_parts][4];  // of a thread

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

// The first key or query of the warp in a tile of vectors of d.
template <class T>
__device__ const T* vectors_from(const T* all, int first, int d) {
  return all + first * vector_stride<T>(d);
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
    begin_copy_16(shared_address(to + row * vector_stride<T>(d) + column), from + (there ? row : 0) * stride + column, there);
  }
}

// The same vectors of one sequence after another; addresses of whole tiles are computed once.
template <class T, int fixed_d>
struct TileCopy {
  const T* own;  // what the thread copies first, of this sequence
  const HeadStrides& strides;
  int count, d;
  __device__ __forceinline__ TileCopy(const T* from, const HeadStrides& of, std::int64_t vectors, int size)
      : own(from + row() * of.token + column()),
        strides(of),
        count(static_cast<int>(vectors < tile ? vectors : tile)),
        d(size) {}

  static constexpr int n = 16 / static_cast<int>(sizeof(T)), packs = fixed_d > 0 ? fixed_d / n : threads;
  static constexpr int rows = threads / packs;  // at once
  __device__ __forceinline__ static int row() { return fixed_d > 0 ? static_cast<int>(threadIdx.x) / packs : 0; }
  __device__ __forceinline__ static int column() {
    return fixed_d > 0 ? static_cast<int>(threadIdx.x) % packs * n : 0;
  }

  // Copies, and goes on to the next sequence.
  __device__ __forceinline__ void begin(T* to) {
    if (fixed_d > 0 && count == tile) {
      T* place = to + row() * vector_stride<T>(fixed_d) + column();
      const T* from = own;
#pragma unroll
      for (int i = 0; i < tile; i += rows, from += rows * strides.token)
        begin_copy_16(shared_address(place + i * vector_stride<T>(fixed_d)), from, true);
    } else {
      const T* first = own - row() * strides.token - column();
      const int size = d / n;
#pragma unroll 1
      for (int i = static_cast<int>(threadIdx.x); i < tile * size; i += threads) {
        const int place = i / size, at = i % size * n;
        const bool there = place < count;
        begin_copy_16(shared_address(to + place * vector_stride<T>(d) + at), first + (there ? place : 0) * strides.token + at, there);
      }
    }
    own += strides.sequence;
  }
};

// q·k, all kernels by the same instructions, so that all see the same scores. keys, queries: the first of the warp.
__device__ __forceinline__ void score(Scores& s, const float* keys, const float* queries, int d, int lane) {
  const int stride = vector_stride<float>(d);
  const float* key = keys + lane / 4 * stride;
  const float* query = queries + 2 * (lane % 4) * stride;
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

// Four 8 x 8 matrices of bfloat16, whose rows the lanes of each quarter of the warp point to. Volatile, since what lies
// there changes; it goes across no barrier.
__device__ __forceinline__ void load_matrices(unsigned (&to)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address));
}
__device__ __forceinline__ void multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void multiply(float (&product)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%10, %10, %10, %10};"
      : "=f"(product[0]), "=f"(product[1]), "=f"(product[2]), "=f"(product[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.0f));
}

// Where a lane points to. Of keys: rows 0-7 and 8-15 of the first 8 columns, then of the next 8. Of queries: 8 and 8
// columns of rows 0-7, then of rows 8-15, two parts.
__device__ __forceinline__ unsigned key_address(const __nv_bfloat16* keys, int stride, int lane) {
  return shared_address(keys + lane % 16 * stride + lane / 16 * 8);
}
__device__ __forceinline__ unsigned query_address(const __nv_bfloat16* queries, int stride, int lane) {
  return shared_address(queries + (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8);
}

// Products of bfloat16 values are exact in float32, in which tensor cores add them up.
__device__ __forceinline__ void multiply_add(Scores& s, const unsigned (&k)[key_parts][4], unsigned query,
                                             unsigned sixteen_rows, bool begins) {
  unsigned q[query_parts / 2][4];
#pragma unroll
  for (int n = 0; n < query_parts / 2; ++n) load_matrices(q[n], query + n * sixteen_rows);
#pragma unroll
  for (int m = 0; m < key_parts; ++m)
#pragma unroll
    for (int n = 0; n < query_parts; ++n) {
      if (begins)
        multiply(s[m][n], k[m], q[n / 2][n % 2 * 2], q[n / 2][n % 2 * 2 + 1]);
      else
        multiply_add(s[m][n], k[m], q[n / 2][n % 2 * 2], q[n / 2][n % 2 * 2 + 1]);
    }
}

__device__ __forceinline__ void load_keys_of(unsigned (&k)[key_parts][4], unsigned key, unsigned sixteen_rows) {
#pragma unroll
  for (int m = 0; m < key_parts; ++m) load_matrices(k[m], key + m * sixteen_rows);
}

__device__ __forceinline__ void score(Scores& s, const __nv_bfloat16* keys, const __nv_bfloat16* queries,
                                      int d, int lane) {
  constexpr unsigned step = 16 * sizeof(__nv_bfloat16);
  const int stride = vector_stride<__nv_bfloat16>(d);
  const unsigned key = key_address(keys, stride, lane), query = query_address(queries, stride, lane);
  const unsigned sixteen_rows = step * static_cast<unsigned>(stride);
  unsigned k[key_parts][4];
  load_keys_of(k, key, sixteen_rows);
  multiply_add(s, k, query, sixteen_rows, true);
#pragma unroll
  for (int i = 1; i < d / 16; ++i) {
    load_keys_of(k, key + i * step, sixteen_rows);
    multiply_add(s, k, query + i * step, sixteen_rows, false);
  }
}

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
      score(s, vectors_from(keys_of(column_tile), place.first_key(), d), vectors_from(queries, place.first_query(), d), d, place.lane);
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

// [queries | keys | log sums] of a sequence
template <class T>
__host__ __device__ constexpr std::size_t stage_bytes(int d) {
  return 2 * vector_bytes<T>(d) + tile * sizeof(float);
}

// `edge`: some of the scores do not count.
template <bool edge, class T, int fixed_d>
__device__ __forceinline__ void add_pair(const T* __restrict__ q, const T* __restrict__ k,
                                         const float* __restrict__ log_sum, const PairResults<Place>& results,
                                         int stages, PairMemory<Place>& shared, unsigned char* memory) {
  const AttentionShape& shape = results.shape;
  const int d = fixed_d > 0 ? fixed_d : shape.d, own = static_cast<int>(threadIdx.x), head = results.head;
  const Place place;
  const Mask mask{rows_of_tile(results.first_row(), shape.t), results.pair.row == results.pair.column};
  const float factor = shape.scale * log2_e;
  const int sequences = static_cast<int>(shape.b);
  TileCopy<T, fixed_d> copy_queries(vectors_of(q, shape.q, 0, results.first_row(), head), shape.q, mask.rows, d);
  TileCopy<T, fixed_d> copy_keys(vectors_of(k, shape.k, 0, results.first_column(), key_head_of(head, shape)), shape.k,
                                 shape.t - results.first_column(), d);
  const float* own_log_sum = log_sum + head * shape.t + results.first_row() + (own < mask.rows ? own : 0);
  const auto stage_of = [&](int sequence) { return memory + stage_bytes<T>(d) * (sequence & (stages - 1)); };
  const auto load = [&](int sequence) {  // one after another
    unsigned char* stage = stage_of(sequence);
    copy_queries.begin(reinterpret_cast<T*>(stage));
    copy_keys.begin(reinterpret_cast<T*>(stage + vector_bytes<T>(d)));
    if (own < tile)
      begin_copy_4(shared_address(stage + 2 * vector_bytes<T>(d) + own * sizeof(float)), own_log_sum, own < mask.rows);
    own_log_sum += shape.heads * shape.t;
  };
  const bool is_corner = results.is_corner(place), is_origin = results.is_origin(place);
  const bool hidden = mask.diagonal && place.key_side > place.query_side;  // the whole warp
  ReceivedRows<Place> received(results, shared);
  PairSums<Place> sums;
  load(0);
#pragma unroll 1
  for (int sequence = 0; sequence < sequences; ++sequence) {
    end_copies();
    __syncthreads();  // all have copied, and are done with the sequence before
    if (stages > 1 && sequence + 1 < sequences) load(sequence + 1);
    if (sequence > 0) received.store(sequence - 1);
    float of_keys[key_parts][2] = {};
    if (!edge || !hidden) {
      const unsigned char* stage = stage_of(sequence);
      const T* keys = vectors_from(reinterpret_cast<const T*>(stage + vector_bytes<T>(d)), place.first_key(), d);
      const T* queries = vectors_from(reinterpret_cast<const T*>(stage), place.first_query(), d);
      Scores s;
      score(s, keys, queries, d, place.lane);
      sums.template add<edge>(of_keys, s, reinterpret_cast<const float*>(stage + 2 * vector_bytes<T>(d)), factor, mask,
                              place,
                              {is_corner, is_origin ? results.scratch.first + sequence * shape.heads + head : nullptr});
    }
    keep_received(shared, of_keys, sequence, place);
    if (stages == 1 && sequence + 1 < sequences) {
      __syncthreads();
      load(sequence + 1);
    }
  }
  sums.finish(shared, place, 1.0f / static_cast<float>(shape.b));
  __syncthreads();
  received.store(sequences - 1);
  results.store_sums(shared);
}

template <class T, int fixed_d>
__global__ void __launch_bounds__(threads, 1)
    tile_pairs(const T* __restrict__ q, const T* __restrict__ k, const float* __restrict__ log_sum,
               AttentionShape shape, AttentionScratch scratch, int tiles, int stages) {
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ PairMemory<Place> shared;
  const PairResults<Place> results{shape, scratch, Pair(blockIdx.x / shape.heads, tiles),
                                   static_cast<int>(blockIdx.x % shape.heads), tiles};
  if (results.pair.row == results.pair.column || results.first_row() + tile > shape.t)
    add_pair<true, T, fixed_d>(q, k, log_sum, results, stages, shared, memory);
  else
    add_pair<false, T, fixed_d>(q, k, log_sum, results, stages, shared, memory);
}

// HeadSums.
enum Value { entropy, entropy_norm, sink, previous, divergence, self, max_logit, profile_entropy };

// The larger; NaN if one is.
__device__ double larger(double a, double b) { return a > b || isnan(a) ? a : b; }
__device__ double combined(int value, double a, double b) { return value == max_logit ? larger(a, b) : a + b; }

constexpr int groups = 8;  // threads for each position: every eighth sequence and tile goes to one of them
constexpr int position_threads = groups * tile;

__device__ __forceinline__ double sum_over_warp(double value) {
#pragma unroll
  for (int offset = warp / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(whole_warp, value, offset);
  return value;
}

// Loads of a thread do not wait for each other, as far as possible: the time is that of a few of them in a row.
__global__ void __launch_bounds__(position_threads)
    positions(AttentionShape shape, AttentionScratch scratch, double* __restrict__ sums) {
  __shared__ double of_groups[2][groups][tile];  // Σ p·log2 p of rows and of their means
  __shared__ double parts[position_threads / warp][attention_values];
  const int own = static_cast<int>(blockIdx.x), tiles = static_cast<int>(gridDim.x);
  const int head = static_cast<int>(blockIdx.y);
  const int place = static_cast<int>(threadIdx.x) % tile, group = static_cast<int>(threadIdx.x) / tile;
  const int lane = static_cast<int>(threadIdx.x) % warp, own_warp = static_cast<int>(threadIdx.x) / warp;
  const std::int64_t i = static_cast<std::int64_t>(own) * tile + place, all = shape.b * shape.heads * shape.t;
  const bool there = i < shape.t;
  double values[attention_values] = {};
  values[max_logit] = -INFINITY;
  const float* rows = scratch.rows + static_cast<std::int64_t>(head) * tiles * shape.t + i;
  const float* means = rows + static_cast<std::int64_t>(shape.heads) * tiles * shape.t;
  double of_rows = 0, of_mean = 0;
#pragma unroll 2
  for (int column_tile = group; column_tile <= own && there; column_tile += groups) {
    of_rows -= rows[column_tile * shape.t];
    of_mean -= means[column_tile * shape.t];
  }
  of_groups[0][group][place] = of_rows;
  of_groups[1][group][place] = of_mean;
  for (std::int64_t sequence = group; sequence < shape.b && there; sequence += groups) {
    const float* from = scratch.received + (sequence * shape.heads + head) * shape.t + i;
    double received = 0;
#pragma unroll 8
    for (int row_tile = own; row_tile < tiles; ++row_tile) received += from[row_tile * all];
    const double p = received / static_cast<double>(shape.t);
    if (p != 0) values[profile_entropy] -= p * log(p);
    if (i == 0) values[sink] += received - scratch.first[sequence * shape.heads + head];
  }
  __syncthreads();
  if (group == 0 && there) {
    of_rows = of_mean = 0;
#pragma unroll
    for (int g = 0; g < groups; ++g) {
      of_rows += of_groups[0][g][place];
      of_mean += of_groups[1][g][place];
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
  } else if (own_warp >= tile / warp && own_warp < tile / warp + 3) {  // what pairs of tiles left
    const int which = own_warp - tile / warp;
    const std::int64_t first_pair = static_cast<std::int64_t>(own) * (own + 1) / 2;
    double value = which == 2 ? -INFINITY : 0;
    for (int column_tile = lane; column_tile <= own; column_tile += warp) {
      const double of_pair = scratch.pairs[((first_pair + column_tile) * shape.heads + head) * 3 + which];
      value = which == 2 ? larger(value, of_pair) : value + of_pair;
    }
    if (which == 0) values[self] = value;
    if (which == 1) values[previous] = value;
    if (which == 2) values[max_logit] = value;
  }
#pragma unroll
  for (int v = 0; v < attention_values; ++v) {
    if (v != profile_entropy && v != sink && own_warp >= tile / warp + 3) continue;
    if (v == max_logit) {
#pragma unroll
      for (int offset = warp / 2; offset > 0; offset /= 2)
        values[v] = larger(values[v], __shfl_xor_sync(whole_warp, values[v], offset));
    } else {
      values[v] = sum_over_warp(values[v]);
    }
    if (lane == 0) parts[own_warp][v] = values[v];
  }
  __syncthreads();
  if (threadIdx.x >= attention_values) return;
  const int v = static_cast<int>(threadIdx.x);
  const int all_warps = v == profile_entropy || v == sink ? position_threads / warp : tile / warp + 3;
  double total = parts[0][v];
  for (int w = 1; w < all_warps; ++w) {
    const double part = parts[w][v];
    total = v == max_logit && part == INFINITY ? part : combined(v, total, part);
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
  score(s, vectors_from(keys, place.first_key(), d), vectors_from(queries, place.first_query(), d), d, place.lane);
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
    for (int offset = warp / 2; offset > 0; offset /= 2) total += __shfl_xor_sync(whole_warp, total, offset);
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
  if (!pair_sums_on_hopper(q, k, log_sum, shape, scratch, stream)) {
    const auto blocks = static_cast<unsigned>(attention_pairs(shape.t) * shape.heads);
    with_type_and_size(shape, [&](auto type, auto size) {
      using T = decltype(type);
      const int stages = 2 * stage_bytes<T>(shape.d) <= most_bytes ? 2 : 1;
      const std::size_t bytes = stages * stage_bytes<T>(shape.d);
      const auto kernel = tile_pairs<T, decltype(size)::value>;
      allow_bytes(kernel, bytes);
      kernel<<<blocks, threads, bytes, stream>>>(static_cast<const T*>(q), static_cast<const T*>(k), log_sum, shape,
                                                 scratch, static_cast<int>(tiles_of(shape)), stages);
    });
  }
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
