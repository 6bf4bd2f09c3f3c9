// A probe: every head, the gains, and the validation loss, on fixed held-out batches. Measurements of the heads during
// any forward pass, and the batches that a model takes.
#pragma once

#include <optional>
#include <vector>

#include "data/blocks.h"
#include "model/decoder.h"
#include "ops/device.h"
#include "probe/head_values.h"
#include "settings/train_options.h"

namespace headscope {

// Batches of tokens as a model takes them.
struct Batch {
  at::Tensor tokens_bt, targets_bt;
};

// The blocks that come after `position` others.
Batch training_batch(const TrainOptions& options, const Tokens& tokens, BlockOrder& order, std::int64_t position,
                     const ComputeDevice& device);

// The fixed batches of the validation loss, in their order in the text; probes measure the first of them.
std::vector<Batch> validation_batches(const TrainOptions& options, const Tokens& tokens, const ComputeDevice& device);

// Makes all measurements of the heads of every layer during a forward pass, in float32 or as given in float64; sums are
// float64. finish() does the work that would make the pass wait for a GPU.
class HeadMeasurer {
 public:
  explicit HeadMeasurer(const MetricSelection& chosen) : chosen_(chosen) {}

  // For one forward pass, which this object must outlive.
  [[nodiscard]] Hooks hooks() {
    return {.observe = [this](std::int64_t, const HeadVectors& vectors) { observe(vectors); }};
  }
  // The chosen measurements of every layer that was observed. Measurements that need a pass of their own are left out.
  [[nodiscard]] std::vector<HeadValues> finish();

 private:
  void observe(const HeadVectors& vectors);

  const MetricSelection& chosen_;
  std::vector<HeadValues> layers_;
  std::vector<at::Tensor> grams_;  // of each layer's keys, for their spectra
};

// `induction` and `previous_random` of every layer: needs a forward pass of its own, over random sequences of at most `longest` tokens that
// repeat themselves (the same for every model with this vocabulary).
std::vector<HeadValues> measure_induction(const Decoder& model, std::int64_t longest);

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
