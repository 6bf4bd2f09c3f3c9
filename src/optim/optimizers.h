// The optimizers of a decoder, Muon on the matrices of its layers, AdamW on everything else; the norm of the gradients
// that they get, and their learning rate.
#pragma once

#include <cstdint>
#include <vector>

#include "model/decoder.h"
#include "optim/muon.h"
#include "settings/train_options.h"

namespace headscope {

// AdamW (Loshchilov and Hutter 2019), weight decay apart from the gradient.
class AdamW {
 public:
  AdamW(NamedTensors parameters, AdamWOptions options);

  void step(double lr);

  // First and second moments by name, and the number of steps: what a checkpoint holds. They share memory with this
  // object.
  [[nodiscard]] NamedTensors state() const;

 private:
  AdamWOptions options_;
  NamedTensors parameters_;
  std::vector<at::Tensor> first_, second_, steps_;
};

// Both together.
class Optimizers {
 public:
  // Keeps references to the model's parameters (tensors are shared, not copied).
  Optimizers(const Decoder& model, const OptimizerOptions& options);

  // One update from the gradients, learning rates times `lr_factor`.
  void step(double lr_factor);

  [[nodiscard]] NamedTensors state() const;

 private:
  OptimizerOptions options_;
  Muon muon_;
  AdamW adamw_;
};

// Scales the gradients so that the norm of all of them together is at most `limit`, and returns the norm before. A norm
// that is not finite is returned and nothing is scaled.
double clip_gradients(const std::vector<at::Tensor>& parameters, double limit);

// The learning rate over training, as a factor of its full value, for step 0 … steps - 1. During warm-up (step + 1) /
// warmup_steps; the cosine falls from 1 after the warm-up to final_share at the last step.
double learning_rate_factor(const ScheduleOptions& options, std::int64_t step, std::int64_t steps);

}  // namespace headscope
