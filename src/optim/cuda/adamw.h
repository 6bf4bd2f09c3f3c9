// AdamW on a GPU: all parameters in one launch.
#pragma once

#include <cstdint>

#include "optim/cuda/update.h"

namespace headscope::cuda {

constexpr int adamw_chunk = 8192;

// A part of one parameter, at most adamw_chunk elements.
struct AdamWChunk {
  float* weight;
  const float* gradient;
  float *first, *second;
  void* copy;  // bfloat16 of the weight; may be null
  int count;
  int parameter;  // whose ParameterStep
};

struct AdamWFactors {
  float beta1_rest, beta2, beta2_rest, eps;  // rest: 1 - beta
};

// Nothing happens unless control->sound.
void adamw(const AdamWChunk* chunks, std::int64_t count, const AdamWFactors& factors, const ParameterStep* own_steps,
           const Control* control, CUstream_st* stream);

}  // namespace headscope::cuda
