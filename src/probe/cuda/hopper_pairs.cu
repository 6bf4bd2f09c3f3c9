// A block takes a pair of tiles of a head and loops over sequences. Four groups of four warps take 64 keys and 64
// queries each: a product of 64 x 64 x d that tensor cores make by themselves, straight from shared memory, then 32
// scores for each thread. Vectors of two sequences are on their way meanwhile.
//
// For 8 x 2048 tokens and 8 heads of 64: 143 M scores, 8704 tiles. For each tile a multiprocessor needs 1024 clocks for
// exp (16 a clock), 1540 to issue 12 instructions for each score, 512 for products. An H200 takes 148 µs, with
// instructions issued in 53 % of the cycles: all groups wait for the same barrier once for each sequence, and then for
// their products.
//
// Compiled for sm_90a only, with HEADSCOPE_SM90A defined (cmake/Torch.cmake); otherwise there is no kernel in here.
#include "probe/cuda/hopper_pairs.h"

#ifdef HEADSCOPE_SM90A
#include "ops/cuda/device_attribute.h"
#include "probe/cuda/attention_tiles.cuh"
#endif

namespace headscope::cuda {

#ifdef HEADSCOPE_SM90A
namespace {

using Bf16 = __nv_bfloat16;
using Place = PlaceOf<16, 64>;  // warp groups have four warps with 16 keys each

constexpr int panel = 64;  // components of a row of 128 bytes
constexpr unsigned row_bytes = panel * sizeof(Bf16);
constexpr unsigned panel_bytes = tile * row_bytes;  // of 128 vectors
constexpr unsigned group_bytes = 64 * row_bytes;    // of the vectors of a warp group
constexpr int stages = 3;
template <int d>
constexpr unsigned vectors_bytes = d / panel* panel_bytes;
// [queries | keys | log sums]; rows of 128 bytes are aligned to 1024.
template <int d>
constexpr unsigned stage_bytes = 2 * vectors_bytes<d> + 1024;

// 128 vectors of one sequence after another, in the order that the products want: the 16 bytes number c of row r lie at
// place c ^ (r % 8) of that row.
template <int d, bool edge>
struct TileCopy {
  static constexpr int packs = d / 8, rows = Place::threads / packs;  // of 16 bytes, of a row; rows at once
  const Bf16* own;                                                    // what the thread copies first
  std::int64_t to_next_rows, to_next_sequence;
  unsigned place;  // of it
  int left;        // vectors from its row on

  __device__ TileCopy(const Bf16* from, const HeadStrides& strides, int count)
      : to_next_rows(rows * strides.token), to_next_sequence(strides.sequence) {
    const int row = static_cast<int>(threadIdx.x) / packs, pack = static_cast<int>(threadIdx.x) % packs;
    left = count - row;
    own = from + (left > 0 ? row * strides.token + pack * 8 : 0);
    place = pack / 8 * panel_bytes + row * row_bytes + (pack % 8 ^ row % 8) * 16;
  }

  // Copies, and goes on to the next sequence.
  __device__ __forceinline__ void begin(unsigned to) {
#pragma unroll
    for (int i = 0; i < tile / rows; ++i) {
      const bool there = !edge || i * rows < left;
      begin_copy_16(to + place + i * rows * row_bytes, there ? own + i * to_next_rows : own, there);
    }
    own += to_next_sequence;
  }
};

// Rows of 128 bytes, eight of them 1024 bytes apart from the next eight, packs of 16 bytes as above.
__device__ __forceinline__ std::uint64_t matrix_at(unsigned address) {
  constexpr std::uint64_t layout = std::uint64_t{1} << 62 | std::uint64_t{1024 / 16} << 32 | std::uint64_t{1} << 16;
  return layout | address / 16;
}

// s <- keys·queriesᵀ, or added to it, over 16 components. All warps of a group call it; nobody may touch s before
// wait_for_products.
template <bool begins>
__device__ __forceinline__ void multiply(float (&s)[1][8][4], std::uint64_t keys, std::uint64_t queries) {
  float(&r)[8][4] = s[0];
  asm volatile(
      "{\n"
      ".reg .pred adds;\n"
      "setp.ne.b32 adds, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, adds, 1, 1, 0, 0;\n"
      "}\n"
      : "+f"(r[0][0]), "+f"(r[0][1]), "+f"(r[0][2]), "+f"(r[0][3]), "+f"(r[1][0]), "+f"(r[1][1]), "+f"(r[1][2]),
        "+f"(r[1][3]), "+f"(r[2][0]), "+f"(r[2][1]), "+f"(r[2][2]), "+f"(r[2][3]), "+f"(r[3][0]), "+f"(r[3][1]),
        "+f"(r[3][2]), "+f"(r[3][3]), "+f"(r[4][0]), "+f"(r[4][1]), "+f"(r[4][2]), "+f"(r[4][3]), "+f"(r[5][0]),
        "+f"(r[5][1]), "+f"(r[5][2]), "+f"(r[5][3]), "+f"(r[6][0]), "+f"(r[6][1]), "+f"(r[6][2]), "+f"(r[6][3]),
        "+f"(r[7][0]), "+f"(r[7][1]), "+f"(r[7][2]), "+f"(r[7][3])
      : "l"(keys), "l"(queries), "r"(begins ? 0 : 1)
      : "memory");
}

template <int d>
__device__ __forceinline__ void score(float (&s)[1][8][4], unsigned keys, unsigned queries) {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int i = 0; i < d; i += 16) {
    const unsigned place = i / panel * panel_bytes + i % panel * sizeof(Bf16);
    if (i == 0)
      multiply<true>(s, matrix_at(keys + place), matrix_at(queries + place));
    else
      multiply<false>(s, matrix_at(keys + place), matrix_at(queries + place));
  }
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) asm volatile("" : "+f"(s[0][n][e])::"memory");  // not read before
}

// `edge`: some of the scores do not count.
template <bool edge, int d>
__device__ __forceinline__ void add_pair(const Bf16* q, const Bf16* k, const float* log_sum,
                                         const PairResults<Place>& results, PairMemory<Place>& shared,
                                         unsigned char* memory) {
  const AttentionShape& shape = results.shape;
  const Place place;
  const int own = static_cast<int>(threadIdx.x), head = results.head, sequences = static_cast<int>(shape.b);
  const Mask mask{rows_of_tile(results.first_row(), shape.t), results.pair.row == results.pair.column};
  TileCopy<d, edge> copy_queries(vectors_of(q, shape.q, 0, results.first_row(), head), shape.q, mask.rows);
  TileCopy<d, edge> copy_keys(vectors_of(k, shape.k, 0, results.first_column(), key_head_of(head, shape)), shape.k,
                              rows_of_tile(results.first_column(), shape.t));
  const float* own_log_sum = log_sum + head * shape.t + results.first_row() + (own < mask.rows ? own : 0);
  const std::int64_t next_log_sum = shape.heads * shape.t;
  const unsigned memory_address = shared_address(memory);
  // Stages are used in turn.
  const auto go_on = [](unsigned& stage) {
    stage = stage + stage_bytes<d> == stages * stage_bytes<d> ? 0 : stage + stage_bytes<d>;
  };
  unsigned loaded = 0, current = 0;
  const auto load = [&](bool there) {
    if (there) {
      const unsigned stage = memory_address + loaded;
      copy_queries.begin(stage);
      copy_keys.begin(stage + vectors_bytes<d>);
      if (own < tile) begin_copy_4(stage + 2 * vectors_bytes<d> + own * 4, own_log_sum, own < mask.rows);
      own_log_sum += next_log_sum;
      go_on(loaded);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  const bool is_corner = results.is_corner(place), is_origin = results.is_origin(place);
  const bool hidden = mask.diagonal && place.key_side >= 4 && place.query_side == 0;  // the whole warp group
  const unsigned own_queries = place.query_side * group_bytes,
                 own_keys = vectors_bytes<d> + place.key_side / 4 * group_bytes;
  const float factor = shape.scale * log2_e;
  ReceivedRows<Place> received(results, shared);
  PairSums<Place> sums;
  for (int sequence = 0; sequence < stages - 1; ++sequence) load(sequence < sequences);
#pragma unroll 1
  for (int sequence = 0; sequence < sequences; ++sequence) {
    asm volatile("cp.async.wait_group %0;\nfence.proxy.async.shared::cta;" ::"n"(stages - 2) : "memory");
    __syncthreads();  // all have copied, and are done with the sequence before
    load(sequence + stages - 1 < sequences);
    if (sequence > 0) received.store(sequence - 1);
    float of_keys[1][2] = {};
    if (!edge || !hidden) {
      const unsigned stage = memory_address + current;
      const auto* log_sums = reinterpret_cast<const float*>(memory + current + 2 * vectors_bytes<d>);
      float s[1][8][4];
      score<d>(s, stage + own_keys, stage + own_queries);
      sums.template add<edge>(of_keys, s, log_sums, factor, mask, place,
                              {is_corner, is_origin ? results.scratch.first + sequence * shape.heads + head : nullptr});
    }
    go_on(current);
    keep_received(shared, of_keys, sequence, place);
  }
  sums.finish(shared, place, 1.0f / static_cast<float>(shape.b));
  __syncthreads();
  received.store(sequences - 1);
  results.store_sums(shared);
}

template <int d>
__global__ void __launch_bounds__(Place::threads, 1)
    tile_pairs(const Bf16* __restrict__ q, const Bf16* __restrict__ k, const float* __restrict__ log_sum,
               AttentionShape shape, AttentionScratch scratch, int tiles) {
  extern __shared__ __align__(1024) unsigned char memory[];
  __shared__ PairMemory<Place> shared;
  const PairResults<Place> results{shape, scratch, Pair(blockIdx.x / shape.heads, tiles),
                                   static_cast<int>(blockIdx.x % shape.heads), tiles};
  if (results.pair.row == results.pair.column || results.first_row() + tile > shape.t)
    add_pair<true, d>(q, k, log_sum, results, shared, memory);
  else
    add_pair<false, d>(q, k, log_sum, results, shared, memory);
}

template <int d>
void launch(const void* q, const void* k, const float* log_sum, const AttentionShape& shape,
            const AttentionScratch& scratch, cudaStream_t stream) {
  constexpr int bytes = stages * stage_bytes<d>;
  static_assert(bytes + sizeof(PairMemory<Place>) <= 227 * 1024, "a block of compute capability 9.0 has no more");
  cudaFuncSetAttribute(tile_pairs<d>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  const auto blocks = static_cast<unsigned>(attention_pairs(shape.t) * shape.heads);
  tile_pairs<d><<<blocks, Place::threads, bytes, stream>>>(static_cast<const Bf16*>(q), static_cast<const Bf16*>(k),
                                                           log_sum, shape, scratch,
                                                           static_cast<int>(attention_tiles(shape.t)));
}

}  // namespace

bool pair_sums_on_hopper(const void* q, const void* k, const float* log_sum, const AttentionShape& shape,
                         const AttentionScratch& scratch, cudaStream_t stream) {
  if (shape.type != ElementType::bf16 || (shape.d != 64 && shape.d != 128) || !is_hopper()) return false;
  if (shape.d == 64)
    launch<64>(q, k, log_sum, shape, scratch, stream);
  else
    launch<128>(q, k, log_sum, shape, scratch, stream);
  return true;
}
#else
bool pair_sums_on_hopper(const void*, const void*, const float*, const AttentionShape&, const AttentionScratch&,
                         CUstream_st*) {
  return false;
}
#endif

}  // namespace headscope::cuda
