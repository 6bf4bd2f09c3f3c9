// A probe: every head, the gains, and the validation loss, on fixed held-out batches. Measurements of the heads during
// any forward pass, and the batches that a model takes.
#pragma once

#include <c10/core/Event.h>

#include <optional>
#include <vector>

#include "data/blocks.h"
#include "data/corpus.h"
#include "model/decoder.h"
#include "ops/device.h"
#include "probe/head_values.h"
#include "probe/rank_probe.h"
#include "settings/train_options.h"

namespace headscope {

// Batches of tokens as a model takes them.
struct Batch {
  at::Tensor tokens_bt, targets_bt;
};

// The blocks that come after `position` others, in memory of the host from which the device copies without a wait.
Batch training_batch(const TrainOptions& options, const Tokens& tokens, BlockOrder& order, std::int64_t position,
                     const ComputeDevice& device);

Batch to_device(const Batch& batch, const ComputeDevice& device);

// The fixed batches of the validation loss (fixed_blocks) on the device; probes measure the first.
std::vector<Batch> validation_batches(const TrainOptions& options, const Corpus& corpus, const ComputeDevice& device);

// What a forward pass tells about heads.
struct HeadMeasurements {
  std::vector<HeadValues> layers;
  Gains gains;
};

// Makes all measurements of the heads of every layer during a forward pass, in float32 or as given in float64; sums are
// float64. On a GPU the pass waits for nothing: it queues kernels, send() queues one transfer of all that they leave,
// and finish() waits for that alone. Where the pass is replayed (a CUDA graph), send() and finish() follow every
// replay.
class HeadMeasurer {
 public:
  explicit HeadMeasurer(MetricSelection chosen) : chosen_(std::move(chosen)) {}
  [[nodiscard]] const MetricSelection& chosen() const { return chosen_; }

  // For one forward pass, which this object must outlive.
  [[nodiscard]] Hooks hooks() {
    return {.observe = [this](std::int64_t, const HeadVectors& vectors) { observe(vectors); }};
  }
  // Where the pass is replayed (a CUDA graph): another measurer's observations of it are this one's, too.
  void observe_as(const HeadMeasurer& recorded) { layers_ = recorded.layers_; }
  // Takes the gains as they are now, if they are chosen.
  void observe_gains(const Decoder& model);
  // Queues the transfer behind the pass. What is queued after it need not wait for the transfer.
  void send();
  // The chosen measurements of every layer that was observed. Measurements that need a pass of their own are left out.
  // Sends first if nobody did. Does not wait for work that was queued after the transfer.
  [[nodiscard]] HeadMeasurements finish();

 private:
  struct Layer {
    std::vector<PendingValues> parts;
    at::Tensor gram_hdd;  // of the keys, for their spectrum; undefined: not chosen
  };
  void observe(const HeadVectors& vectors);
  [[nodiscard]] std::vector<at::Tensor> on_device() const;

  MetricSelection chosen_;
  std::vector<Layer> layers_;
  at::Tensor q_gains_ln_, k_gains_ln_;  // float64, [layer, dimension]; undefined: not chosen
  at::Tensor sent_, arrived_;           // what is on the device, side by side, and the same in pinned memory
  std::optional<c10::Event> arrival_;   // empty: nothing was sent
};

// `induction` and `previous_random` of every layer: needs a forward pass of its own, over random sequences of at most
// `longest` tokens that repeat themselves (the same for every model with this vocabulary).
std::vector<HeadValues> measure_induction(const Decoder& model, std::int64_t longest);

// Those of the first batch's k_pr and chosen measures of rank that probe_model gives, by a forward pass of their own in
// float32.
RankErrors measure_rank_errors(const Decoder& model, const at::Tensor& tokens_bt, const MetricSelection& chosen);

// Empty without QK-Norm.
Gains gains_of(const Decoder& model);

// Mean next-token loss of each batch, nats, computed in `type`. `edit` changes the keys; `observe` sees the first
// batch.
std::vector<double> batch_losses(const Decoder& model, const std::vector<Batch>& batches, at::ScalarType type,
                                 const EditKeys& edit = {}, const Observe& observe = {});
// Their mean, added in their order.
double mean_loss(const std::vector<double>& losses);
// Both.
double validation_loss(const Decoder& model, const std::vector<Batch>& batches, at::ScalarType type,
                       const EditKeys& edit = {}, const Observe& observe = {});

struct ProbeResult {
  std::vector<HeadValues> layers;  // of the first batch
  Gains gains;
  std::vector<double> losses;                  // of each batch, nats; empty: not asked for
  std::optional<double> val_loss;              // their mean
  std::optional<RankErrors> rank_errors = {};  // of the first batch
};

// Heads are measured in float32, the loss in `type`. `with_errors`: of the chosen measures of rank, if there are any.
// Changes nothing: a run without probes ends with the same weights.
ProbeResult probe_model(const Decoder& model, const std::vector<Batch>& batches, at::ScalarType type,
                        const MetricSelection& chosen, bool with_loss, bool with_errors = false);

}  // namespace headscope
