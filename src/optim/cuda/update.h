// What every update on a GPU starts with: the norm of all gradients, and whether the update is to be made.
#pragma once

#include <cstdint>

#include "ops/cuda/element_type.h"
#include "optim/decay.h"

namespace headscope::cuda {

// Partial sums of squares that sum_squares writes.
constexpr int norm_partials = 528;

// What the kernels after it read.
struct Control {
  float clip;  // factor on gradients
  float lr_factor;
  std::int32_t sound;  // 0: nothing is to change
};

// AdamW at the step that a parameter has reached: lr / (1 - beta1^t) and 1 / sqrt(1 - beta2^t). Weight decay:
// value · kept + pull, with kept = 1 - lr · decay and pull = lr · decay · target.
struct ParameterStep {
  float rate, inverse_root, kept, pull;
};

struct UpdateStart {
  const float* lr_factor;
  const float* loss;
  float* grad_norm;     // becomes the norm before clipping
  std::int32_t* sound;  // becomes 0 where the loss or the norm is not finite
  double limit;         // of the norm
  // AdamW:
  float* steps;              // of each parameter: one more where sound
  const Decay* decays;       // of each parameter
  ParameterStep* own_steps;  // of each parameter, written here
  int parameters;
  double lr, beta1, beta2;
};

// gradients: all of them, `count`: a multiple of 4. partials: float64 [norm_partials], whose sum is the square of the
// norm.
void sum_squares(const float* gradients, std::int64_t count, double* partials, CUstream_st* stream);
void start_update(const UpdateStart& start, const double* partials, Control* control, CUstream_st* stream);

}  // namespace headscope::cuda
