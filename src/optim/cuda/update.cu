// Bound by memory: 4 bytes for each gradient. The grid does not depend on the GPU, so that the order of the sum does
// not.
#include <cuda_runtime.h>

#include "optim/cuda/blocks.cuh"
#include "optim/cuda/update.h"

namespace headscope::cuda {
namespace {

__device__ float square_sum(float4 x) {
  return x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
}

// float32 over runs of 32, float64 from there on.
__global__ void __launch_bounds__(threads_per_block)
    sum_block_squares(const float* __restrict__ gradients, std::int64_t count, double* __restrict__ partials) {
  constexpr int run = 8;
  const auto* packs = reinterpret_cast<const float4*>(gradients);
  const std::int64_t packs_in_all = count / 4;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * threads_per_block;
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads_per_block + threadIdx.x;
  double sum = 0;
  for (; i + (run - 1) * threads < packs_in_all; i += run * threads) {
    float4 x[run];
#pragma unroll
    for (int j = 0; j < run; ++j) x[j] = packs[i + j * threads];
    float short_sum = 0;
#pragma unroll
    for (int j = 0; j < run; ++j) short_sum += square_sum(x[j]);
    sum += short_sum;
  }
  for (; i < packs_in_all; i += threads) sum += square_sum(packs[i]);
  sum = sum_over_block(sum);
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

// One block.
__global__ void __launch_bounds__(threads_per_block)
    decide(UpdateStart start, const double* __restrict__ partials, Control* __restrict__ control) {
  __shared__ bool is_sound;
  double sum = 0;
  for (int i = threadIdx.x; i < norm_partials; i += threads_per_block) sum += partials[i];
  sum = sum_over_block(sum);
  const double rate = start.lr * *start.lr_factor;
  if (threadIdx.x == 0) {
    const double norm = sqrt(sum);
    *start.grad_norm = static_cast<float>(norm);
    is_sound = *start.sound != 0 && isfinite(static_cast<float>(norm)) && isfinite(*start.loss);
    if (!is_sound) *start.sound = 0;
    control->clip = norm > start.limit ? static_cast<float>(start.limit / norm) : 1.0f;
    control->lr_factor = *start.lr_factor;
    control->sound = is_sound ? 1 : 0;
  }
  __syncthreads();
  if (!is_sound) return;
  for (int i = threadIdx.x; i < start.parameters; i += threads_per_block) {
    const float step = start.steps[i] + 1;
    start.steps[i] = step;
    const Decay decay = start.decays[i];
    start.own_steps[i] = {static_cast<float>(rate / (1 - pow(start.beta1, static_cast<double>(step)))),
                          static_cast<float>(1 / sqrt(1 - pow(start.beta2, static_cast<double>(step)))),
                          static_cast<float>(1 - rate * decay.rate),
                          static_cast<float>(rate * decay.rate * decay.target)};
  }
}

}  // namespace

void sum_squares(const float* gradients, std::int64_t count, double* partials, cudaStream_t stream) {
  sum_block_squares<<<norm_partials, threads_per_block, 0, stream>>>(gradients, count, partials);
}

void start_update(const UpdateStart& start, const double* partials, Control* control, cudaStream_t stream) {
  decide<<<1, threads_per_block, 0, stream>>>(start, partials, control);
}

}  // namespace headscope::cuda
