// Reads every part once. A block takes 32 columns of an array; each of its 16 warps adds up every sixteenth part.
#include <cuda_runtime.h>

#include "ops/cuda/elements.cuh"
#include "ops/cuda/partial_sums.h"

namespace headscope::cuda {
namespace {

constexpr int warps = 16;

__global__ void __launch_bounds__(warps* warp_width) kernel(const __grid_constant__ PartialSumsTable table) {
  __shared__ float sums[warps][warp_width];
  const PartialSumsTable::Entry& entry = table.entries[blockIdx.y];
  const int lane = threadIdx.x % warp_width, own_warp = threadIdx.x / warp_width;
  const int column = static_cast<int>(blockIdx.x) * warp_width + lane;
  float sum = 0;
  if (column < entry.width) {
#pragma unroll 8
    for (int i = own_warp; i < entry.count; i += warps)
      sum += entry.parts[static_cast<long long>(i) * entry.width + column];
  }
  sums[own_warp][lane] = sum;
  __syncthreads();
  if (own_warp != 0 || column >= entry.width) return;
  for (int w = 1; w < warps; ++w) sum += sums[w][lane];
  entry.gradient[column] = table.adds ? entry.gradient[column] + sum : sum;
}

}  // namespace

void add_partial_sums(const PartialSumsTable& table, cudaStream_t stream) {
  int widest = 0;
  for (int i = 0; i < table.count; ++i) widest = table.entries[i].width > widest ? table.entries[i].width : widest;
  const dim3 grid(static_cast<unsigned>((widest + warp_width - 1) / warp_width), static_cast<unsigned>(table.count));
  kernel<<<grid, warps * warp_width, 0, stream>>>(table);
}

}  // namespace headscope::cuda
