// What is measured at a probe: the rank of the keys, the gains, and the validation loss, on fixed held-out batches.
#pragma once

#include <optional>
#include <vector>

#include "model/decoder.h"

namespace headscope {

struct Batch {
  at::Tensor tokens_bt, targets_bt;
};

struct ProbeResult {
  std::vector<std::vector<double>> key_pr;          // [layer][key head], of the first batch
  std::vector<std::vector<double>> q_gain, k_gain;  // [layer][d_k]; empty without QK-Norm
  std::optional<double> val_loss;                   // mean over all batches, nats
};

// Keys are measured in float32, the loss in `type`. Changes nothing: the weights after a run are the same without
// probes.
ProbeResult probe_model(const Decoder& model, const std::vector<Batch>& batches, at::ScalarType type, bool with_loss);

}  // namespace headscope
