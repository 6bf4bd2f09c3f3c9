// Bound by memory: mirror reads 1 byte and writes 1 for each element, polynomial reads 2 and writes 2. A block takes a
// tile on or below the diagonal and writes its transpose, too: no other block touches either, so that the result may take
// the place of an input.
#include <cuda_runtime.h>

#include "optim/cuda/blocks.cuh"
#include "optim/cuda/symmetric.h"

namespace headscope::cuda {
namespace {

constexpr int side = 64;
constexpr int packs_of_row = side / at_once;
constexpr int packs_of_thread = side * packs_of_row / threads_per_block;

// An odd number of words to a row: columns are read from different banks.
using Tile = __half[side][side + 2];

// Row and column of the tile with this number: (0, 0), (1, 0), (1, 1), (2, 0), …
__device__ int2 tile_place(int number) {
  int row = static_cast<int>((sqrtf(8.0f * static_cast<float>(number) + 1.0f) - 1.0f) / 2.0f);
  while (row * (row + 1) / 2 > number) --row;  // where the root was rounded
  while ((row + 1) * (row + 2) / 2 <= number) ++row;
  return {row, number - row * (row + 1) / 2};
}

// 8 elements of a row; those past the edge are 0. `packed`: n is a multiple of 8, so that a pack is inside or outside.
__device__ Halves load_pack(const __half* matrix, int n, int row, int column, bool packed) {
  Halves result;
#pragma unroll
  for (int j = 0; j < at_once; ++j) store(&result.values[j], 0.0f);
  if (row >= n) return result;
  const __half* place = matrix + static_cast<std::int64_t>(row) * n + column;
  if (packed) {
    if (column < n) result = *reinterpret_cast<const Halves*>(place);
  } else {
#pragma unroll
    for (int j = 0; j < at_once; ++j)
      if (column + j < n) result.values[j] = place[j];
  }
  return result;
}

__device__ void store_pack(__half* matrix, int n, int row, int column, bool packed, const Halves& value) {
  if (row >= n) return;
  __half* place = matrix + static_cast<std::int64_t>(row) * n + column;
  if (packed) {
    if (column < n) *reinterpret_cast<Halves*>(place) = value;
  } else {
#pragma unroll
    for (int j = 0; j < at_once; ++j)
      if (column + j < n) place[j] = value.values[j];
  }
}

// target(i, j) and target(j, i) become value(pack of row i, …) for i >= j. keeps_lower: the lower triangle is in place
// already, but for tiles on the diagonal, which are written as a whole.
template <class Value>
__device__ void write_both(__half* target, int n, bool packed, bool keeps_lower, Value value) {
  __shared__ Tile tile;
  const int2 place = tile_place(static_cast<int>(blockIdx.x));
  const int row0 = place.x * side, column0 = place.y * side;
  const bool on_diagonal = row0 == column0;
#pragma unroll
  for (int k = 0; k < packs_of_thread; ++k) {
    const int pack = k * threads_per_block + static_cast<int>(threadIdx.x);
    const int row = pack / packs_of_row, column = pack % packs_of_row * at_once;
    const Halves result = value(row0 + row, column0 + column);
#pragma unroll
    for (int j = 0; j < at_once; ++j) tile[row][column + j] = result.values[j];
    if (!on_diagonal && !keeps_lower) store_pack(target, n, row0 + row, column0 + column, packed, result);
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < packs_of_thread; ++k) {
    const int pack = k * threads_per_block + static_cast<int>(threadIdx.x);
    const int row = pack / packs_of_row, column = pack % packs_of_row * at_once;  // of the transpose
    Halves result;
#pragma unroll
    for (int j = 0; j < at_once; ++j)
      result.values[j] = on_diagonal && row >= column + j ? tile[row][column + j] : tile[column + j][row];
    store_pack(target, n, column0 + row, row0 + column, packed, result);
  }
}

__global__ void __launch_bounds__(threads_per_block) mirror_kernel(__half* matrices, int n, bool packed) {
  __half* matrix = matrices + static_cast<std::int64_t>(blockIdx.y) * n * n;
  write_both(matrix, n, packed, /*keeps_lower=*/true,
             [=](int row, int column) { return load_pack(matrix, n, row, column, packed); });
}

__global__ void __launch_bounds__(threads_per_block)
    polynomial_kernel(const __half* __restrict__ grams, __half* squares, int n, bool packed, Polynomial p) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * n * n;
  const __half* gram = grams + first;
  __half* square = squares + first;
  write_both(square, n, packed, /*keeps_lower=*/false, [=](int row, int column) {
    const Halves g = load_pack(gram, n, row, column, packed), s = load_pack(square, n, row, column, packed);
    Halves result;
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      const float of_identity = row == column + j ? p.a : 0.0f;
      store(&result.values[j], of_identity + p.b * wide(g.values[j]) + p.c * wide(s.values[j]));
    }
    return result;
  });
}

dim3 grid_for(std::int64_t matrices, int n) {
  const unsigned tiles = static_cast<unsigned>((n + side - 1) / side);
  return {tiles * (tiles + 1) / 2, static_cast<unsigned>(matrices)};
}

bool takes_packs(const void* first, int n) {
  return n % at_once == 0 && reinterpret_cast<std::uintptr_t>(first) % 16 == 0;
}

}  // namespace

void mirror(void* symmetric, std::int64_t matrices, int n, cudaStream_t stream) {
  if (matrices == 0 || n == 0) return;
  mirror_kernel<<<grid_for(matrices, n), threads_per_block, 0, stream>>>(static_cast<__half*>(symmetric), n,
                                                                         takes_packs(symmetric, n));
}

void polynomial(const void* gram, void* square, std::int64_t matrices, int n, const Polynomial& polynomial,
                cudaStream_t stream) {
  if (matrices == 0 || n == 0) return;
  polynomial_kernel<<<grid_for(matrices, n), threads_per_block, 0, stream>>>(
      static_cast<const __half*>(gram), static_cast<__half*>(square), n,
      takes_packs(gram, n) && takes_packs(square, n), polynomial);
}

}  // namespace headscope::cuda
