// Bound by memory: the logits are read and written once; a block takes a row, and its second read comes out of the
// second-level cache (98 kB for a vocabulary of 49,152 in bfloat16; 264 rows at a time, 26 MB).
#include <cuda_runtime.h>

#include "ops/cuda/cross_entropy.h"
#include "ops/cuda/elements.cuh"

namespace headscope::cuda {
namespace {

constexpr int threads = 1024;
constexpr float log2_e = 1.4426950408889634f, ln_2 = 0.6931471805599453f;

// Σ 2^(x - top), with x = logit · log2 e.
struct Sum {
  float top = -INFINITY, sum = 0;

  __device__ void add(const Sum& other) {
    const float larger = fmaxf(top, other.top);
    if (larger == -INFINITY) {  // nothing but minus infinity so far, or NaN
      sum += other.sum;
      return;
    }
    sum = sum * exp2f(top - larger) + other.sum * exp2f(other.top - larger);
    top = larger;
  }
};

__device__ Sum sum_of_warp(Sum own) {
  for (int offset = warp_width / 2; offset > 0; offset /= 2)
    own.add({__shfl_xor_sync(whole_warp, own.top, offset), __shfl_xor_sync(whole_warp, own.sum, offset)});
  return own;
}

// NaN in a row makes its loss NaN: fmaxf passes it over, the sum does not.
template <class T, int n>
__global__ void __launch_bounds__(threads, 2)
    kernel(T* __restrict__ logits, const std::int64_t* __restrict__ targets, float* __restrict__ losses,
           int vocabulary) {
  __shared__ Sum parts[threads / warp_width];
  T* row = logits + static_cast<std::int64_t>(blockIdx.x) * vocabulary;
  const int target = static_cast<int>(targets[blockIdx.x]), packs = vocabulary / n;
  const float target_logit = wide(row[target]);
  auto* packed = reinterpret_cast<Pack<T, n>*>(row);
  Sum own;
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < packs; i += threads) {
    const Pack<T, n> pack = packed[i];
    Sum here;
#pragma unroll
    for (int j = 0; j < n; ++j) here.top = fmaxf(here.top, wide(pack.values[j]));
    here.top *= log2_e;
    const float base = here.top == -INFINITY ? 0.0f : here.top;
#pragma unroll
    for (int j = 0; j < n; ++j) here.sum += exp2f(fmaf(wide(pack.values[j]), log2_e, -base));
    own.add(here);
  }
  own = sum_of_warp(own);
  if (threadIdx.x % warp_width == 0) parts[threadIdx.x / warp_width] = own;
  __syncthreads();  // all have read the target's logit, too
  own = sum_of_warp(parts[threadIdx.x % warp_width]);
  const float log_sum = own.top + log2f(own.sum);
  if (threadIdx.x == 0) losses[blockIdx.x] = log_sum * ln_2 - target_logit;
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < packs; i += threads) {
    Pack<T, n> pack = packed[i];
    const int place = target - i * n;  // of the target in this pack, if it is there
#pragma unroll
    for (int j = 0; j < n; ++j) {
      const float p = exp2f(fmaf(wide(pack.values[j]), log2_e, -log_sum));
      store(&pack.values[j], j == place ? p - 1.0f : p);
    }
    packed[i] = pack;
  }
}

template <class T>
void launch(void* logits, const std::int64_t* targets, float* losses, std::int64_t rows, std::int64_t vocabulary,
            cudaStream_t stream) {
  constexpr int n = 16 / sizeof(T);
  const auto blocks = static_cast<unsigned>(rows);
  if (vocabulary % n == 0 && reinterpret_cast<std::uintptr_t>(logits) % 16 == 0)
    kernel<T, n><<<blocks, threads, 0, stream>>>(static_cast<T*>(logits), targets, losses,
                                                 static_cast<int>(vocabulary));
  else
    kernel<T, 1><<<blocks, threads, 0, stream>>>(static_cast<T*>(logits), targets, losses, static_cast<int>(vocabulary));
}

}  // namespace

void cross_entropy(void* logits, const std::int64_t* targets, float* losses, std::int64_t rows, std::int64_t vocabulary,
                   ElementType type, cudaStream_t stream) {
  if (rows == 0) return;
  if (type == ElementType::f32)
    launch<float>(logits, targets, losses, rows, vocabulary, stream);
  else
    launch<__nv_bfloat16>(logits, targets, losses, rows, vocabulary, stream);
}

}  // namespace headscope::cuda
