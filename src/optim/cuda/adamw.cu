// Bound by memory: 16 bytes read and 16 written for each parameter, 2 more for its copy.
#include <cuda_runtime.h>

#include "optim/cuda/adamw.h"
#include "optim/cuda/blocks.cuh"

namespace headscope::cuda {
namespace {

struct Step {
  AdamWFactors factors;
  float clip;
  ParameterStep own;

  __device__ void operator()(float& weight, float gradient, float& first, float& second) const {
    const float g = gradient * clip;
    first += factors.beta1_rest * (g - first);
    second = factors.beta2 * second + factors.beta2_rest * g * g;
    const float taken = own.rate * first / (sqrtf(second) * own.inverse_root + factors.eps);
    weight = weight * own.kept - (taken - own.pull);
  }
};

__global__ void __launch_bounds__(threads_per_block)
    update(const AdamWChunk* __restrict__ chunks, AdamWFactors factors, const ParameterStep* __restrict__ own_steps,
           const Control* __restrict__ control) {
  if (control->sound == 0) return;
  const AdamWChunk chunk = chunks[blockIdx.x];
  const Step step{factors, control->clip, own_steps[chunk.parameter]};
  auto* copy = static_cast<__nv_bfloat16*>(chunk.copy);
  const bool packed = is_aligned(chunk.weight) && is_aligned(chunk.gradient) && is_aligned(chunk.first) &&
                      is_aligned(chunk.second) && is_aligned(copy);
  const int in_packs = packed ? chunk.count / at_once * at_once : 0;
  for (int i = threadIdx.x * at_once; i < in_packs; i += threads_per_block * at_once) {
    Floats weight = load_floats(chunk.weight + i), first = load_floats(chunk.first + i),
           second = load_floats(chunk.second + i);
    const Floats gradient = load_floats(chunk.gradient + i);
    Bfloats rounded;
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      step(weight.values[j], gradient.values[j], first.values[j], second.values[j]);
      store(&rounded.values[j], weight.values[j]);
    }
    store_floats(chunk.weight + i, weight);
    store_floats(chunk.first + i, first);
    store_floats(chunk.second + i, second);
    if (copy != nullptr) *reinterpret_cast<Bfloats*>(copy + i) = rounded;
  }
  for (int i = in_packs + threadIdx.x; i < chunk.count; i += threads_per_block) {
    step(chunk.weight[i], chunk.gradient[i], chunk.first[i], chunk.second[i]);
    if (copy != nullptr) store(copy + i, chunk.weight[i]);
  }
}

}  // namespace

void adamw(const AdamWChunk* chunks, std::int64_t count, const AdamWFactors& factors, const ParameterStep* own_steps,
           const Control* control, cudaStream_t stream) {
  if (count == 0) return;
  update<<<static_cast<unsigned>(count), threads_per_block, 0, stream>>>(chunks, factors, own_steps, control);
}

}  // namespace headscope::cuda
