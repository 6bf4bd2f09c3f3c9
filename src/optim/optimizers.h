// The optimizers of a decoder, Muon on the matrices of its layers, AdamW on everything else; and their learning rate.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "model/decoder.h"
#include "optim/adamw.h"
#include "optim/device_step.h"
#include "optim/muon.h"
#include "optim/shares.h"
#include "settings/train_options.h"

namespace headscope {

// AdamW's decay of such a parameter. An own head counts as embedding.
Decay decay_of(const OptimizerOptions& options, ParameterKind kind);

// Both together.
class Optimizers {
 public:
  // Keeps references to the model's parameters (tensors are shared, not copied). Of several ranks, this one updates its
  // share of them, and has the state of those alone.
  Optimizers(const Decoder& model, const OptimizerOptions& options, const Sharing& sharing = {});

  // How an update is shared out. Its gradients are those that step() takes.
  [[nodiscard]] Shares& shares() { return shares_; }

  // One update of what this rank owns from its gradients, learning rates times `lr_factor`.
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
  // The same in parts, between which ranks exchange what they have: the square of the norm of the own gradients, to be
  // summed (it stays where it is); the update of what this rank owns; the weights of the others.
  const at::Tensor& sum_squares();
  void step_own(const DeviceUpdate& update, double limit);
  void unpack_weights();

  // By name: what a checkpoint holds. They share memory with this object.
  [[nodiscard]] NamedTensors state() const;
  // That of all ranks, on rank 0: what one rank would have. Empty elsewhere. Every rank calls it.
  [[nodiscard]] NamedTensors whole_state(const Decoder& model, const Ranks& ranks) const;
  // load(name, value) fills a tensor of the state that one rank would have; of it, this rank's share is taken.
  void load_state(const std::function<void(const std::string& name, const at::Tensor& value)>& load) const;

 private:
  OptimizerOptions options_;
  NamedTensors parameters_;
  Shares shares_;
  Muon muon_;
  AdamW adamw_;
  std::optional<DeviceStep> device_;
};

// The learning rate over training, as a factor of its full value, for step 0 … steps - 1. During warm-up (step + 1) /
// warmup_steps; the cosine falls from 1 after the warm-up to final_share at the last step.
double learning_rate_factor(const ScheduleOptions& options, std::int64_t step, std::int64_t steps);

}  // namespace headscope
