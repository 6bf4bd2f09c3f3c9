// The optimizers of a decoder, Muon on the matrices of its layers, AdamW on everything else; the norm of the gradients
// that they get, and their learning rate.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/decoder.h"
#include "optim/adamw.h"
#include "optim/device_step.h"
#include "optim/muon.h"
#include "settings/train_options.h"

namespace headscope {

// AdamW's decay of such a parameter. An own head counts as embedding.
Decay decay_of(const OptimizerOptions& options, ParameterKind kind);

// Both together.
class Optimizers {
 public:
  // Keeps references to the model's parameters (tensors are shared, not copied).
  Optimizers(const Decoder& model, const OptimizerOptions& options);

  // One update from the gradients, learning rates times `lr_factor`.
  void step(double lr_factor);

  // From here on every trained parameter has a gradient that stays where it is, zero at first, and updates are
  // DeviceUpdates. Tensors that state() gave before are no longer those of the optimizers.
  // Gradients of one Muon matrix lie one behind the other in memory, and so do all matrices of one shape.
  void keep_gradients();

  // Tensors in bfloat16 by the names of parameters, which this and every update make equal to the rounded parameters.
  // To be called again with the same tensors after parameters were loaded. Parameters that are not trained keep what
  // they get here.
  void keep_copies(const NamedTensors& copies);

  // An update without the host: norm of all gradients, clipping to `limit`, Muon, AdamW, copies; then the gradients are
  // zero. If it is not sound, weights, state, copies and gradients stay.
  void step(const DeviceUpdate& update, double limit);

  [[nodiscard]] NamedTensors state() const;

 private:
  OptimizerOptions options_;
  NamedTensors parameters_;
  std::vector<LayerMatrix> matrices_;
  Muon muon_;
  AdamW adamw_;
  std::optional<DeviceStep> device_;
};

// Scales the gradients so that the norm of all of them together is at most `limit`, and returns the norm before. A norm
// that is not finite is returned and nothing is scaled.
double clip_gradients(const std::vector<at::Tensor>& parameters, double limit);

// The learning rate over training, as a factor of its full value, for step 0 … steps - 1. During warm-up (step + 1) /
// warmup_steps; the cosine falls from 1 after the warm-up to final_share at the last step.
double learning_rate_factor(const ScheduleOptions& options, std::int64_t step, std::int64_t steps);

}  // namespace headscope
