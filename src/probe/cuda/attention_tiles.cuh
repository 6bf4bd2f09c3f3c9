// What kernels share that take the scores of causal attention by tiles of 128 rows (queries) and 128 columns (keys).
//
// Scores are those of keys (rows of a fragment) with queries (columns), since what a key receives is wanted for each
// sequence, but what belongs to a query only summed over them: the first is then summed within a thread.
#pragma once

#include <cuda_runtime.h>

#include "ops/cuda/elements.cuh"
#include "probe/cuda/attention_sums.h"

namespace headscope::cuda {

constexpr int tile = 128;
constexpr float masked = -1e30f;  // finite, so that exp(masked)·masked is 0
constexpr float log2_e = 1.4426950408889634f;

// Where a thread is, in a tile with so many keys and queries for each warp. Its scores: element 2·half + j of
// [key part][query part] is that of key 16·part + 8·half + lane / 4 with query 8·part + 2·(lane % 4) + j.
template <int keys, int queries>
struct PlaceOf {
  static constexpr int key_sides = tile / keys, query_sides = tile / queries;  // warps along them
  static constexpr int warps = key_sides * query_sides, threads = warps * warp_width;
  static constexpr int key_parts = keys / 16, query_parts = queries / 8;
  int lane = static_cast<int>(threadIdx.x) % warp_width;
  int key_side = static_cast<int>(threadIdx.x) / warp_width % key_sides;
  int query_side = static_cast<int>(threadIdx.x) / warp_width / key_sides;

  __device__ int first_key() const { return key_side * keys; }
  __device__ int first_query() const { return query_side * queries; }
  __device__ int key(int part, int half) const { return key_side * keys + 16 * part + 8 * half + lane / 4; }
  __device__ int query(int part, int j) const { return query_side * queries + 8 * part + 2 * (lane % 4) + j; }
};

// Copies that go on while the thread computes.
__device__ __forceinline__ unsigned shared_address(const void* place) {
  return static_cast<unsigned>(__cvta_generic_to_shared(place));
}
__device__ __forceinline__ void begin_copy_16(unsigned to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)),
               "r"(there ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void begin_copy_4(unsigned to, const void* from, bool there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)),
               "r"(there ? 4 : 0)
               : "memory");
}

__device__ __forceinline__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The vectors of a head of a sequence, from token `first` on.
template <class T>
__device__ const T* vectors_of(const T* x, const HeadStrides& strides, std::int64_t sequence, std::int64_t first,
                               int head) {
  return x + sequence * strides.sequence + first * strides.token + head * strides.head;
}
__device__ inline int key_head_of(int head, const AttentionShape& shape) {
  return head * shape.key_heads / shape.heads;
}
__device__ inline int rows_of_tile(std::int64_t first_row, std::int64_t t) {
  return static_cast<int>(t - first_row < tile ? t - first_row : tile);
}

// The sums of eight values over the 8 lanes that have the same queries: lane l gets that of value l / 4. Seven
// exchanges instead of 24.
__device__ __forceinline__ float sums_over_keys(const float (&values)[8], int lane) {
  float of_four[4], of_two[2];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float kept = lane & 16 ? values[i + 4] : values[i], given = lane & 16 ? values[i] : values[i + 4];
    of_four[i] = kept + __shfl_xor_sync(whole_warp, given, 16);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float kept = lane & 8 ? of_four[i + 2] : of_four[i], given = lane & 8 ? of_four[i] : of_four[i + 2];
    of_two[i] = kept + __shfl_xor_sync(whole_warp, given, 8);
  }
  const float kept = lane & 4 ? of_two[1] : of_two[0], given = lane & 4 ? of_two[0] : of_two[1];
  return kept + __shfl_xor_sync(whole_warp, given, 4);
}
// Over the 8 lanes that have the same queries, and over the 4 that have the same keys.
__device__ __forceinline__ float sum_over_keys(float value) {
#pragma unroll
  for (int offset = 4; offset < warp_width; offset *= 2) value += __shfl_xor_sync(whole_warp, value, offset);
  return value;
}
__device__ __forceinline__ float largest_over_keys(float value) {
#pragma unroll
  for (int offset = 4; offset < warp_width; offset *= 2)
    value = fmaxf(value, __shfl_xor_sync(whole_warp, value, offset));
  return value;
}
__device__ __forceinline__ float sum_over_queries(float value) {
  value += __shfl_xor_sync(whole_warp, value, 1);
  return value + __shfl_xor_sync(whole_warp, value, 2);
}
__device__ __forceinline__ float largest_of_warp(float value) {
  value = largest_over_keys(value);
  value = fmaxf(value, __shfl_xor_sync(whole_warp, value, 1));
  return fmaxf(value, __shfl_xor_sync(whole_warp, value, 2));
}

// Which scores of a tile count: all rows up to `rows`, and in a tile on the diagonal keys up to the query.
struct Mask {
  int rows;
  bool diagonal;
  __device__ bool shows(int key, int query) const { return key <= (diagonal ? query : tile) && query < rows; }
};

// A tile of rows and one of columns. Those on the diagonal come last: they are done sooner.
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

// What a block of tile_pairs shares.
template <class Place>
struct PairMemory {
  float received[2][Place::query_sides][tile];  // of this sequence and the one before
  float of_rows[2][Place::key_sides][tile];
  float of_warps[3][Place::warps];
};

// What a thread looks for in a tile.
struct Special {
  bool corner;   // the thread has the last key of the tile before, the token before the first query
  float* first;  // where p of the first token to itself goes; null: it is elsewhere
};

// What a thread sums of the pair of tiles of its block, over sequences.
template <class Place>
struct PairSums {
  static constexpr int key_parts = Place::key_parts, parts = Place::query_parts;
  static_assert(parts % 4 == 0);         // finish
  float mean[key_parts][parts][4] = {};  // Σ p
  float products[parts][2] = {};         // Σ p·log2 p of a query
  float top = -INFINITY, self = 0, previous = 0;

  // The scores of one sequence. received: of the keys of the thread. `edge`: some of the scores do not count.
  template <bool edge>
  __device__ __forceinline__ void add(float (&received)[key_parts][2], const float (&s)[key_parts][parts][4],
                                      const float* log_sum, float factor, const Mask& mask, const Place& place,
                                      const Special& special) {
#pragma unroll
    for (int n = 0; n < parts; ++n) {
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
            top = shown ? fmaxf(top, value) : top;
            mean[m][n][2 * half + j] += p;
            products[n][j] = fmaf(p, x, products[n][j]);
            received[m][half] += p;
            if (edge && mask.diagonal) {
              if (key == query) self += p;
              if (key + 1 == query) previous += p;
            }
            if (m == key_parts - 1 && half == 1 && n == 0 && j == 0 && special.corner) previous += p;
            if (edge && m == 0 && half == 0 && n == 0 && j == 0 && special.first != nullptr) *special.first = p;
          }
      }
    }
  }

  // When all sequences are done: into the memory of the block, which adds up what its warps have.
  __device__ __forceinline__ void finish(PairMemory<Place>& memory, const Place& place, float share) const {
#pragma unroll
    for (int first = 0; first < parts; first += 4) {  // eight queries at a time
      __syncwarp();                                   // not all at once: registers are too few
      float of_rows[8], of_means[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int n = first + i / 2, j = i % 2;
        of_rows[i] = products[n][j];
        of_means[i] = 0;
#pragma unroll
        for (int m = 0; m < key_parts; ++m)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const float p = mean[m][n][2 * half + j] * share;
            if (p != 0) of_means[i] = fmaf(p, __log2f(p), of_means[i]);
          }
      }
      const int own = place.lane / 4, query = place.query(first + own / 2, own % 2);
      memory.of_rows[0][place.key_side][query] = sums_over_keys(of_rows, place.lane);
      memory.of_rows[1][place.key_side][query] = sums_over_keys(of_means, place.lane);
    }
    const float all_self = sum_over_warp(self), all_previous = sum_over_warp(previous), largest = largest_of_warp(top);
    if (place.lane != 0) return;
    const int own_warp = static_cast<int>(threadIdx.x) / warp_width;
    memory.of_warps[0][own_warp] = all_self;
    memory.of_warps[1][own_warp] = all_previous;
    memory.of_warps[2][own_warp] = largest;
  }
};

// Where a block of tile_pairs leaves its results.
template <class Place>
struct PairResults {
  const AttentionShape& shape;
  const AttentionScratch& scratch;
  Pair pair;
  int head, tiles;

  __device__ std::int64_t first_row() const { return static_cast<std::int64_t>(pair.row) * tile; }
  __device__ std::int64_t first_column() const { return static_cast<std::int64_t>(pair.column) * tile; }

  // Whether the thread has the last key of the tile before, the token before the first query; the first token itself.
  __device__ bool is_corner(const Place& place) const {
    return pair.column + 1 == pair.row && place.key_side == Place::key_sides - 1 && place.query_side == 0 &&
           place.lane == warp_width - 4;
  }
  __device__ bool is_origin(const Place& place) const {
    return pair.row == 0 && place.key_side == 0 && place.query_side == 0 && place.lane == 0;
  }

  // What was summed over all sequences; the threads of the block have waited for each other.
  __device__ __forceinline__ void store_sums(const PairMemory<Place>& memory) const {
    const int own = static_cast<int>(threadIdx.x);
    if (own < rows_of_tile(first_row(), shape.t)) {
#pragma unroll
      for (int which = 0; which < 2; ++which) {
        float sum = 0;
#pragma unroll
        for (int side = 0; side < Place::key_sides; ++side) sum += memory.of_rows[which][side][own];
        const std::int64_t column = (static_cast<std::int64_t>(which) * shape.heads + head) * tiles + pair.column;
        scratch.rows[column * shape.t + first_row() + own] = sum;
      }
    }
    if (own >= 3) return;
    float total = memory.of_warps[own][0];
#pragma unroll
    for (int w = 1; w < Place::warps; ++w)
      total = own == 2 ? fmaxf(total, memory.of_warps[own][w]) : total + memory.of_warps[own][w];
    scratch.pairs[(pair.place() * shape.heads + head) * 3 + own] = own == 2 ? total * shape.scale : total;
  }
};

// Writes what the keys of a tile receive of all its queries, one sequence after another. All threads of the block have
// one.
template <class Place>
class ReceivedRows {
 public:
  __device__ ReceivedRows(const PairResults<Place>& results, const PairMemory<Place>& memory)
      : memory_(memory), next_(results.shape.heads * results.shape.t) {
    const std::int64_t key = results.first_column() + own();
    stores_ = own() < tile && key < results.shape.t;
    const std::int64_t row = results.pair.row * results.shape.b * results.shape.heads + results.head;
    out_ = results.scratch.received + row * results.shape.t + (stores_ ? key : 0);
  }
  __device__ __forceinline__ void store(int sequence) {
    if (stores_) {
      float sum = 0;
#pragma unroll
      for (int side = 0; side < Place::query_sides; ++side) sum += memory_.received[sequence % 2][side][own()];
      *out_ = sum;
    }
    out_ += next_;
  }

 private:
  __device__ static int own() {
    return static_cast<int>(threadIdx.x);
  }

  const PairMemory<Place>& memory_;
  std::int64_t next_;
  float* out_;
  bool stores_;
};

// What the keys of a thread receive, into the memory of the block.
template <class Place>
__device__ __forceinline__ void keep_received(PairMemory<Place>& memory, const float (&of_keys)[Place::key_parts][2],
                                              int sequence, const Place& place) {
#pragma unroll
  for (int m = 0; m < Place::key_parts; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = sum_over_queries(of_keys[m][half]);
      if (place.lane % 4 == 0) memory.received[sequence % 2][place.query_side][place.key(m, half)] = sum;
    }
}

}  // namespace headscope::cuda
