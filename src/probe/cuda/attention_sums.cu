// Three kernels over tiles of 64 rows and 64 columns on and below the diagonal:
//   rows       (row tile, head, sequence), loops over column tiles: softmax of each row online, its entropy
//   columns    (column tile, row tile, head), loops over sequences: the same scores again, hence attention; what keys
//              receive and the entropy of the row's mean over sequences
//   positions  (tile, head): adds up what the first two left of each position
// For 8 x 2048 tokens and 8 heads of 64, rows and columns each take 134 M scores. Tensor cores (17 GFLOP) and memory
// (0.3 and 0.5 GB, out of the second-level cache) need 0.02 to 0.1 ms; what bounds are shared memory (2.4 GB of
// fragments and scores in rows, 28 TB/s: 0.09 ms) and the ten or so instructions of a score (0.05 ms).
#include <cuda_runtime.h>
#include <mma.h>

#include <type_traits>

#include "ops/cuda/elements.cuh"
#include "probe/cuda/attention_sums.h"

namespace headscope::cuda {
namespace {

constexpr int warp = 32;
constexpr unsigned all_lanes = 0xffffffffu;
constexpr int tile = 64;  // rows and columns
constexpr int warps = 4;  // of a block; each takes 16 rows of the tile, the height of a fragment
constexpr int warp_rows = 16;
constexpr int threads = warps * warp;
// Distance of rows of scores: four rows, of which pairs of lanes read 32 bytes each, lie in different banks; wmma wants
// a multiple of 4.
constexpr int score_stride = tile + 8;
constexpr float masked = -1e30f;  // finite, so that exp(masked)·masked is 0

// Distance of vectors in shared memory: rows start in different banks. wmma wants a multiple of 8 elements.
template <class T>
__host__ __device__ constexpr int vector_stride(int d) {
  return std::is_same_v<T, float> ? d + 1 : d + 8;
}

// [scores | queries | keys], each a multiple of 128 bytes.
template <class T>
__host__ __device__ constexpr std::size_t vector_bytes(int d) {
  return static_cast<std::size_t>(tile) * vector_stride<T>(d) * sizeof(T);
}
constexpr std::size_t score_bytes = static_cast<std::size_t>(tile) * score_stride * sizeof(float);

template <class T>
struct Tiles {
  float* scores;
  T *queries, *keys;
  __device__ Tiles(unsigned char* memory, int d)
      : scores(reinterpret_cast<float*>(memory)),
        queries(reinterpret_cast<T*>(memory + score_bytes)),
        keys(reinterpret_cast<T*>(memory + score_bytes + vector_bytes<T>(d))) {}
};

// 64 vectors of d, `stride` elements apart, into shared memory; those from `count` on are zero.
__device__ void load_vectors(float* to, const float* from, std::int64_t stride, std::int64_t count, int d) {
  for (int i = threadIdx.x; i < tile * d; i += threads) {
    const int row = i / d, column = i % d;
    to[row * vector_stride<float>(d) + column] = row < count ? from[row * stride + column] : 0.0f;
  }
}
__device__ void load_vectors(__nv_bfloat16* to, const __nv_bfloat16* from, std::int64_t stride, std::int64_t count,
                             int d) {
  constexpr int n = sizeof(uint4) / sizeof(__nv_bfloat16);
  const int packs = d / n;
  for (int i = threadIdx.x; i < tile * packs; i += threads) {
    const int row = i / packs, column = i % packs * n;
    uint4 pack = make_uint4(0, 0, 0, 0);
    if (row < count) pack = *reinterpret_cast<const uint4*>(from + row * stride + column);
    *reinterpret_cast<uint4*>(to + row * vector_stride<__nv_bfloat16>(d) + column) = pack;
  }
}

// scale · q·k of the warp's 16 rows and all columns. Both kernels call it, so that both see the same scores.
__device__ void score_rows(const Tiles<float>& tiles, int d, float scale) {
  const int lane = threadIdx.x % warp, first = threadIdx.x / warp * warp_rows, stride = vector_stride<float>(d);
  float sums[warp_rows][2] = {};
  for (int i = 0; i < d; ++i) {
    const float left = tiles.keys[lane * stride + i], right = tiles.keys[(lane + warp) * stride + i];
#pragma unroll
    for (int row = 0; row < warp_rows; ++row) {
      const float q = tiles.queries[(first + row) * stride + i];
      sums[row][0] = fmaf(q, left, sums[row][0]);
      sums[row][1] = fmaf(q, right, sums[row][1]);
    }
  }
#pragma unroll
  for (int row = 0; row < warp_rows; ++row) {
    tiles.scores[(first + row) * score_stride + lane] = sums[row][0] * scale;
    tiles.scores[(first + row) * score_stride + lane + warp] = sums[row][1] * scale;
  }
}
// Products of bfloat16 values are exact in float32, in which tensor cores add them up.
__device__ void score_rows(const Tiles<__nv_bfloat16>& tiles, int d, float scale) {
  namespace wmma = nvcuda::wmma;
  constexpr int side = 16;
  const int first = threadIdx.x / warp * warp_rows, stride = vector_stride<__nv_bfloat16>(d);
  wmma::fragment<wmma::accumulator, side, side, side, float> sums[tile / side];
#pragma unroll
  for (int c = 0; c < tile / side; ++c) wmma::fill_fragment(sums[c], 0.0f);
#pragma unroll
  for (int i = 0; i < d; i += side) {
    wmma::fragment<wmma::matrix_a, side, side, side, __nv_bfloat16, wmma::row_major> q;
    wmma::load_matrix_sync(q, tiles.queries + first * stride + i, stride);
#pragma unroll
    for (int c = 0; c < tile / side; ++c) {
      wmma::fragment<wmma::matrix_b, side, side, side, __nv_bfloat16, wmma::col_major> k;
      wmma::load_matrix_sync(k, tiles.keys + c * side * stride + i, stride);
      wmma::mma_sync(sums[c], q, k, sums[c]);
    }
  }
#pragma unroll
  for (int c = 0; c < tile / side; ++c) {
#pragma unroll
    for (int i = 0; i < sums[c].num_elements; ++i) sums[c].x[i] *= scale;
    wmma::store_matrix_sync(tiles.scores + first * score_stride + c * side, sums[c], score_stride,
                            wmma::mem_row_major);
  }
}

// Where the vectors of a sequence and head begin, at token `first`.
template <class T>
__device__ const T* vectors_of(const T* x, std::int64_t sequence, std::int64_t first, int head, int heads,
                               const AttentionShape& shape) {
  return x + ((sequence * shape.t + first) * heads + head) * shape.d;
}
__device__ int key_head_of(int head, const AttentionShape& shape) { return head * shape.key_heads / shape.heads; }

// Two lanes share a row; lane `half` takes columns 4·(2g + half) + e.
// With x = s - m for the largest score m so far, e = exp x: Z = Σ e, W = Σ e·x, H = ln Z - W/Z. A larger m moves all x
// by δ = m - m': W' = exp(δ)·(W + δ·Z), Z' = exp(δ)·Z.
struct Softmax {
  static constexpr int quads = tile / 8;  // of columns, for each lane
  float max = -INFINITY;
  double sum = 0, weighted = 0;

  // `last`: the largest column of the tile that counts.
  __device__ void add(const float* row, int half, int last) {
    float s[quads * 4];
#pragma unroll
    for (int g = 0; g < quads; ++g) {
      const int column = 4 * (2 * g + half);
      const float4 quad = *reinterpret_cast<const float4*>(row + column);
      s[4 * g] = column <= last ? quad.x : masked;
      s[4 * g + 1] = column + 1 <= last ? quad.y : masked;
      s[4 * g + 2] = column + 2 <= last ? quad.z : masked;
      s[4 * g + 3] = column + 3 <= last ? quad.w : masked;
    }
    float top = s[0];
#pragma unroll
    for (int j = 1; j < quads * 4; ++j) top = fmaxf(top, s[j]);
    top = fmaxf(max, fmaxf(top, __shfl_xor_sync(all_lanes, top, 1)));
    float sums[2] = {}, products[2] = {};  // in float32 for 32 values, then in float64
#pragma unroll
    for (int j = 0; j < quads * 4; ++j) {
      const float x = s[j] - top, e = __expf(x);
      sums[j % 2] += e;
      products[j % 2] = fmaf(e, x, products[j % 2]);
    }
    const float shift = max == -INFINITY ? 0.0f : max - top;
    const double factor = __expf(shift);
    weighted = factor * (weighted + shift * sum) + (products[0] + products[1]);
    sum = factor * sum + (sums[0] + sums[1]);
    max = top;
  }
  __device__ void add_other_lane() {
    sum += __shfl_xor_sync(all_lanes, sum, 1);
    weighted += __shfl_xor_sync(all_lanes, weighted, 1);
  }
};

// fixed_d: d where it is known to the compiler, else 0.
template <class T, int fixed_d>
__global__ void __launch_bounds__(threads, 4)
    rows(const T* __restrict__ q, const T* __restrict__ k, AttentionShape shape, AttentionScratch scratch) {
  extern __shared__ __align__(128) unsigned char memory[];
  const int d = fixed_d > 0 ? fixed_d : shape.d;
  const Tiles<T> tiles(memory, d);
  const int row_tile = static_cast<int>(gridDim.x - 1 - blockIdx.x);  // the longest first: blocks end together
  const int head = static_cast<int>(blockIdx.y);
  const std::int64_t sequence = blockIdx.z, first_row = static_cast<std::int64_t>(row_tile) * tile;
  const int row = threadIdx.x / 2, half = threadIdx.x % 2;
  const float* scores = tiles.scores + row * score_stride;
  load_vectors(tiles.queries, vectors_of(q, sequence, first_row, head, shape.heads, shape),
               static_cast<std::int64_t>(shape.heads) * d, shape.t - first_row, d);
  Softmax softmax;
  float to_first = 0, to_previous = 0, to_self = 0;  // scores
  for (int column_tile = 0; column_tile <= row_tile; ++column_tile) {
    const std::int64_t first_column = static_cast<std::int64_t>(column_tile) * tile;
    __syncthreads();  // the keys of the tile before are done with
    load_vectors(tiles.keys, vectors_of(k, sequence, first_column, key_head_of(head, shape), shape.key_heads, shape),
                 static_cast<std::int64_t>(shape.key_heads) * d, shape.t - first_column, d);
    __syncthreads();
    score_rows(tiles, d, shape.scale);
    __syncwarp();  // a warp reads no rows but its own
    if (column_tile == 0) to_first = scores[0];
    if (column_tile == row_tile - 1 && row == 0) to_previous = scores[tile - 1];
    if (column_tile == row_tile) {
      to_self = scores[row];
      if (row > 0) to_previous = scores[row - 1];
    }
    softmax.add(scores, half, column_tile == row_tile ? row : tile - 1);
  }
  softmax.add_other_lane();
  if (half != 0 || first_row + row >= shape.t) return;
  const std::int64_t all = shape.b * shape.heads * shape.t;
  const std::int64_t place = (sequence * shape.heads + head) * shape.t + first_row + row;
  const auto inverse = static_cast<float>(1 / softmax.sum);
  const double entropy = log(softmax.sum) - softmax.weighted / softmax.sum;
  scratch.softmax[2 * place] = softmax.max;
  scratch.softmax[2 * place + 1] = inverse;
  scratch.entropy[place] = entropy < 0 ? 0 : entropy;  // NaN stays
  scratch.weights[place] = __expf(to_first - softmax.max) * inverse;
  scratch.weights[all + place] = __expf(to_previous - softmax.max) * inverse;
  scratch.weights[2 * all + place] = __expf(to_self - softmax.max) * inverse;
}

// A lane takes the columns 2·lane and 2·lane + 1 of its warp's rows: sums over rows stay in the lane.
template <class T, int fixed_d>
__global__ void __launch_bounds__(threads, 4)
    columns(const T* __restrict__ q, const T* __restrict__ k, AttentionShape shape, AttentionScratch scratch) {
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ float2 softmax[tile];
  __shared__ float received[warps][tile];
  const int column_tile = static_cast<int>(blockIdx.x), row_tile = static_cast<int>(blockIdx.y);
  if (column_tile > row_tile) return;
  const int d = fixed_d > 0 ? fixed_d : shape.d;
  const Tiles<T> tiles(memory, d);
  const int head = static_cast<int>(blockIdx.z), lane = threadIdx.x % warp, own_warp = threadIdx.x / warp;
  const int own_row = own_warp * warp_rows, column = 2 * lane;
  const std::int64_t first_row = static_cast<std::int64_t>(row_tile) * tile;
  const std::int64_t first_column = static_cast<std::int64_t>(column_tile) * tile;
  float mean[warp_rows][2] = {};
  for (std::int64_t sequence = 0; sequence < shape.b; ++sequence) {
    const std::int64_t vectors = (sequence * shape.heads + head) * shape.t;  // of this sequence and head
    __syncthreads();  // what the sequence before left is done with
    load_vectors(tiles.queries, vectors_of(q, sequence, first_row, head, shape.heads, shape),
                 static_cast<std::int64_t>(shape.heads) * d, shape.t - first_row, d);
    load_vectors(tiles.keys, vectors_of(k, sequence, first_column, key_head_of(head, shape), shape.key_heads, shape),
                 static_cast<std::int64_t>(shape.key_heads) * d, shape.t - first_column, d);
    if (threadIdx.x < tile) {
      const std::int64_t row = first_row + threadIdx.x;
      softmax[threadIdx.x] = row < shape.t ? reinterpret_cast<const float2*>(scratch.softmax)[vectors + row]
                                           : make_float2(0, 0);  // a row that is not there attends to nothing
    }
    __syncthreads();
    score_rows(tiles, d, shape.scale);
    __syncwarp();
    float sums[2] = {};
#pragma unroll
    for (int r = 0; r < warp_rows; ++r) {
      const int row = own_row + r;
      const float2 of_row = softmax[row];
      const float2 s = *reinterpret_cast<const float2*>(tiles.scores + row * score_stride + column);
      const int last = column_tile == row_tile ? row : tile - 1;
      const float left = column <= last ? __expf(s.x - of_row.x) * of_row.y : 0.0f;
      const float right = column + 1 <= last ? __expf(s.y - of_row.x) * of_row.y : 0.0f;
      mean[r][0] += left;
      mean[r][1] += right;
      sums[0] += left;
      sums[1] += right;
    }
    received[own_warp][column] = sums[0];
    received[own_warp][column + 1] = sums[1];
    __syncthreads();
    if (threadIdx.x < tile && first_column + threadIdx.x < shape.t) {
      float sum = 0;
#pragma unroll
      for (int w = 0; w < warps; ++w) sum += received[w][threadIdx.x];
      scratch.received[row_tile * shape.b * shape.heads * shape.t + vectors + first_column + threadIdx.x] = sum;
    }
  }
  const float share = 1.0f / static_cast<float>(shape.b);
#pragma unroll
  for (int r = 0; r < warp_rows; ++r) {
    float entropy = 0;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const float p = mean[r][j] * share;
      if (p != 0) entropy -= p * logf(p);
    }
#pragma unroll
    for (int offset = warp / 2; offset > 0; offset /= 2) entropy += __shfl_xor_sync(all_lanes, entropy, offset);
    const std::int64_t row = first_row + own_row + r;
    if (lane == 0 && row < shape.t)
      scratch.mean_entropy[(static_cast<std::int64_t>(head) * gridDim.y + column_tile) * shape.t + row] = entropy;
  }
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
  __shared__ double entropies[groups][tile];
  __shared__ double parts[position_threads / warp][attention_values];
  const int own = static_cast<int>(blockIdx.x), tiles = static_cast<int>(gridDim.x);
  const int head = static_cast<int>(blockIdx.y);
  const int place = threadIdx.x % tile, group = threadIdx.x / tile;
  const std::int64_t i = static_cast<std::int64_t>(own) * tile + place, all = shape.b * shape.heads * shape.t;
  double values[attention_values] = {};
  values[max_logit] = -INFINITY;
  double row_entropies = 0;
  for (std::int64_t sequence = group; sequence < shape.b && i < shape.t; sequence += groups) {
    const std::int64_t at = (sequence * shape.heads + head) * shape.t + i;
    row_entropies += scratch.entropy[at];
    values[self] += scratch.weights[2 * all + at];
    if (i > 0) {
      values[sink] += scratch.weights[at];
      values[previous] += scratch.weights[all + at];
    }
    // The largest score passes over NaN, the sum does not.
    const float max = scratch.softmax[2 * at], inverse = scratch.softmax[2 * at + 1];
    values[max_logit] = larger(values[max_logit], isnan(inverse) && max < INFINITY ? inverse : max);
    double received = 0;
#pragma unroll 8
    for (int row_tile = own; row_tile < tiles; ++row_tile) received += scratch.received[row_tile * all + at];
    const double p = received / static_cast<double>(shape.t);
    if (p != 0) values[profile_entropy] -= p * log(p);
  }
  entropies[group][place] = row_entropies;
  __syncthreads();
  if (group == 0 && i < shape.t) {
    double total = 0;
#pragma unroll
    for (int g = 0; g < groups; ++g) total += entropies[g][place];
    values[entropy] = total;
    if (i > 0) {
      const double widest = log(static_cast<double>(i + 1)), sequences = static_cast<double>(shape.b);
      double of_mean = 0;
#pragma unroll 8
      for (int c = 0; c <= own; ++c)
        of_mean += scratch.mean_entropy[(static_cast<std::int64_t>(head) * tiles + c) * shape.t + i];
      const double between = of_mean - total / sequences;
      values[entropy_norm] = total / widest;
      values[divergence] = (between < 0 ? 0 : between) / fmin(log(sequences), widest);
    }
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
  sums[(static_cast<std::int64_t>(own) * shape.heads + head) * attention_values + v] = total;
}

template <class T, int fixed_d>
void launch(const void* q, const void* k, const AttentionShape& shape, const AttentionScratch& scratch,
            cudaStream_t stream) {
  const auto tiles = static_cast<unsigned>(attention_tiles(shape.t));
  const auto heads = static_cast<unsigned>(shape.heads), sequences = static_cast<unsigned>(shape.b);
  const std::size_t bytes = score_bytes + 2 * vector_bytes<T>(shape.d);
  for (const auto kernel : {rows<T, fixed_d>, columns<T, fixed_d>})  // more than 48 KB is had on request only
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  const T *queries = static_cast<const T*>(q), *keys = static_cast<const T*>(k);
  rows<T, fixed_d><<<dim3(tiles, heads, sequences), threads, bytes, stream>>>(queries, keys, shape, scratch);
  columns<T, fixed_d><<<dim3(tiles, tiles, heads), threads, bytes, stream>>>(queries, keys, shape, scratch);
}

}  // namespace

bool supports_attention_sums(int d) { return d >= 16 && d <= 128 && d % 16 == 0; }

std::int64_t attention_tiles(std::int64_t t) { return (t + tile - 1) / tile; }

void attention_sums(const void* q, const void* k, const AttentionShape& shape, const AttentionScratch& scratch,
                    double* sums, cudaStream_t stream) {
  if (shape.type == ElementType::f32)
    launch<float, 0>(q, k, shape, scratch, stream);
  else if (shape.d == 32)
    launch<__nv_bfloat16, 32>(q, k, shape, scratch, stream);
  else if (shape.d == 64)
    launch<__nv_bfloat16, 64>(q, k, shape, scratch, stream);
  else if (shape.d == 128)
    launch<__nv_bfloat16, 128>(q, k, shape, scratch, stream);
  else
    launch<__nv_bfloat16, 0>(q, k, shape, scratch, stream);
  positions<<<dim3(static_cast<unsigned>(attention_tiles(shape.t)), static_cast<unsigned>(shape.heads)),
              position_threads, 0, stream>>>(shape, scratch, sums);
}

}  // namespace headscope::cuda
