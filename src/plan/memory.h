// What a process that trains needs of the memory of its device.
#pragma once

#include <optional>

#include "plan/shares.h"
#include "settings/setup.h"

namespace headscope {

// How a forward step is computed.
struct StepKind {
  double element = 4;          // bytes of an activation: 2 on a GPU
  bool written_out = false;    // without autograd (model/training_pass.h)
  bool repeated_keys = false;  // keys and values for every query head, beside the packed ones
};
// On a GPU, in bfloat16.
StepKind step_on_gpu(const Setup& setup);

// Logits are computed in slices of at most so many bytes: with autograd, and without.
constexpr double autograd_slice_bytes = 1 << 28, written_out_slice_bytes = 1 << 30;

struct ProcessMemory {  // bytes
  double program = 0;
  double weights = 0;
  double copies = 0;  // of the weights, in the type of activations
  double gradients = 0;
  double exchanged = 0;  // what goes to other ranks and comes from them
  double state = 0;      // of the optimizers
  double working = 0;    // activations and logits, or what Polar Express works with: the larger
  [[nodiscard]] double total() const { return program + weights + copies + gradients + exchanged + state + working; }
};

// shares: of a rank; nothing: one process, which exchanges nothing. ordered: gradients are added in their order.
ProcessMemory process_memory(const Setup& setup, const StepKind& kind, const std::optional<UpdateShares>& shares = {},
                             bool ordered = false);

// Weights, gradients and optimizer state of one process, whatever it computes.
double training_state_bytes(const ParameterCounts& parameters);

}  // namespace headscope
