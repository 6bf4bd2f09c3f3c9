// The measurements of a probe: every head, the gains, and the validation loss, on fixed held-out batches.
#pragma once

#include <optional>
#include <vector>

#include "heads/metrics.h"
#include "model/decoder.h"
#include "probe/batches.h"
#include "probe/head_values.h"

namespace headscope {

// Empty without QK-Norm.
Gains gains_of(const Decoder& model);

// Mean next-token loss over the batches, nats, computed in `type`. `edit` changes the keys; `observe` sees the first
// batch.
double validation_loss(const Decoder& model, const std::vector<Batch>& batches, at::ScalarType type,
                       const EditKeys& edit = {}, const Observe& observe = {});

struct ProbeResult {
  std::vector<HeadValues> layers;  // of the first batch
  Gains gains;
  std::optional<double> val_loss;  // mean over all batches, nats
};

// Heads are measured in float32, the loss in `type`. Changes nothing: a run without
// probes ends with the same weights.
ProbeResult probe_model(const Decoder& model, const std::vector<Batch>& batches, at::ScalarType type,
                        const MetricSelection& chosen, bool with_loss);

}  // namespace headscope
