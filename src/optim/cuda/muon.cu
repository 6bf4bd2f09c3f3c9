// Bound by memory. momentum_step reads 8 bytes and writes 6 for each element, scale_matrices reads 2 and writes 2,
// weight_step reads 6 and writes 4, 2 more for the copy.
#include <cuda_runtime.h>

#include "optim/cuda/blocks.cuh"
#include "optim/cuda/muon.h"

namespace headscope::cuda {
namespace {

struct Mix {
  float rest, clip;  // rest: 1 - mu

  // The momentum changes; what is returned goes into the update.
  __device__ float operator()(float gradient, float& momentum) const {
    const float g = gradient * clip;
    momentum += rest * (g - momentum);
    return momentum + rest * (g - momentum);  // lerp(g, momentum, mu)
  }
};

__global__ void __launch_bounds__(threads_per_block)
    mix(const MomentumChunk* __restrict__ chunks, const float* __restrict__ gradients, float* __restrict__ momenta,
        __nv_bfloat16* __restrict__ xs, double* __restrict__ squares, float rest, const Control* __restrict__ control) {
  if (control->sound == 0) return;
  const MomentumChunk chunk = chunks[blockIdx.x];
  const Mix mixed{rest, control->clip};
  const float* gradient = gradients + chunk.begin;
  float* momentum = momenta + chunk.begin;
  __nv_bfloat16* x = xs + chunk.begin;
  const bool packed = is_aligned(gradient) && is_aligned(momentum) && is_aligned(x);
  const int in_packs = packed ? chunk.count / at_once * at_once : 0;
  float sum = 0;  // of at most 32 elements
  for (int i = threadIdx.x * at_once; i < in_packs; i += threads_per_block * at_once) {
    const Floats g = load_floats(gradient + i);
    Floats m = load_floats(momentum + i);
    Bfloats rounded;
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      const float value = mixed(g.values[j], m.values[j]);
      sum += value * value;
      store(&rounded.values[j], value);
    }
    store_floats(momentum + i, m);
    *reinterpret_cast<Bfloats*>(x + i) = rounded;
  }
  for (int i = in_packs + threadIdx.x; i < chunk.count; i += threads_per_block) {
    const float value = mixed(gradient[i], momentum[i]);
    sum += value * value;
    store(x + i, value);
  }
  const double total = sum_over_block(sum);
  if (threadIdx.x == 0) squares[blockIdx.x] = total;
}

// A block for each matrix.
__global__ void __launch_bounds__(threads_per_block)
    scales(const double* __restrict__ squares, const std::int32_t* __restrict__ first_chunk, double margin, double eps,
           float* __restrict__ scale) {
  double sum = 0;
  for (int i = first_chunk[blockIdx.x] + threadIdx.x; i < first_chunk[blockIdx.x + 1]; i += threads_per_block)
    sum += squares[i];
  sum = sum_over_block(sum);
  if (threadIdx.x == 0) scale[blockIdx.x] = static_cast<float>(1 / (margin * sqrt(sum) + eps));
}

__global__ void __launch_bounds__(threads_per_block)
    scale_down(const MomentumChunk* __restrict__ chunks, const __nv_bfloat16* __restrict__ xs,
               const float* __restrict__ scale, __half* __restrict__ scaled) {
  const MomentumChunk chunk = chunks[blockIdx.x];
  const float factor = scale[chunk.matrix];
  const __nv_bfloat16* x = xs + chunk.begin;
  __half* y = scaled + chunk.begin;
  const int in_packs = is_aligned(x) && is_aligned(y) ? chunk.count / at_once * at_once : 0;
  for (int i = threadIdx.x * at_once; i < in_packs; i += threads_per_block * at_once) {
    const Bfloats given = *reinterpret_cast<const Bfloats*>(x + i);
    Halves result;
#pragma unroll
    for (int j = 0; j < at_once; ++j) store(&result.values[j], factor * wide(given.values[j]));
    *reinterpret_cast<Halves*>(y + i) = result;
  }
  for (int i = in_packs + threadIdx.x; i < chunk.count; i += threads_per_block) store(y + i, factor * wide(x[i]));
}

__global__ void __launch_bounds__(threads_per_block)
    descend(const WeightChunk* __restrict__ chunks, const __half* __restrict__ xs,
            const Control* __restrict__ control) {
  if (control->sound == 0) return;
  const WeightChunk chunk = chunks[blockIdx.x];
  const float rate = chunk.rate * control->lr_factor;
  const __half* x = xs + chunk.begin;
  auto* copy = static_cast<__nv_bfloat16*>(chunk.copy);
  const bool packed = is_aligned(chunk.weight) && is_aligned(x) && is_aligned(copy);
  const int in_packs = packed ? chunk.count / at_once * at_once : 0;
  for (int i = threadIdx.x * at_once; i < in_packs; i += threads_per_block * at_once) {
    Floats weight = load_floats(chunk.weight + i);
    const Halves step = *reinterpret_cast<const Halves*>(x + i);
    Bfloats rounded;
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      weight.values[j] -= rate * wide(step.values[j]);
      store(&rounded.values[j], weight.values[j]);
    }
    store_floats(chunk.weight + i, weight);
    if (copy != nullptr) *reinterpret_cast<Bfloats*>(copy + i) = rounded;
  }
  for (int i = in_packs + threadIdx.x; i < chunk.count; i += threads_per_block) {
    chunk.weight[i] -= rate * wide(x[i]);
    if (copy != nullptr) store(copy + i, chunk.weight[i]);
  }
}

}  // namespace

void momentum_step(const MomentumChunk* chunks, std::int64_t count, const float* gradient, float* momentum, void* x,
                   double* squares, double mu, const Control* control, cudaStream_t stream) {
  if (count == 0) return;
  mix<<<static_cast<unsigned>(count), threads_per_block, 0, stream>>>(
      chunks, gradient, momentum, static_cast<__nv_bfloat16*>(x), squares, static_cast<float>(1 - mu), control);
}

void norm_scales(const double* squares, const std::int32_t* first_chunk, std::int64_t matrices, double margin,
                 double eps, float* scale, cudaStream_t stream) {
  if (matrices == 0) return;
  scales<<<static_cast<unsigned>(matrices), threads_per_block, 0, stream>>>(squares, first_chunk, margin, eps, scale);
}

void scale_matrices(const MomentumChunk* chunks, std::int64_t count, const void* x, const float* scale, void* scaled,
                    cudaStream_t stream) {
  if (count == 0) return;
  scale_down<<<static_cast<unsigned>(count), threads_per_block, 0, stream>>>(
      chunks, static_cast<const __nv_bfloat16*>(x), scale, static_cast<__half*>(scaled));
}

void weight_step(const WeightChunk* chunks, std::int64_t count, const void* x, const Control* control,
                 cudaStream_t stream) {
  if (count == 0) return;
  descend<<<static_cast<unsigned>(count), threads_per_block, 0, stream>>>(chunks, static_cast<const __half*>(x),
                                                                          control);
}

}  // namespace headscope::cuda
