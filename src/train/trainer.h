// A model in training: weights, optimizers, and the place in the data.
#pragma once

#include "data/blocks.h"
#include "data/corpus.h"
#include "model/decoder.h"
#include "ops/device.h"
#include "optim/optimizers.h"
#include "probe/probe.h"
#include "train/options.h"

namespace headscope {

struct StepRecord {
  std::int64_t step = 0;    // updates done, this one included
  std::int64_t tokens = 0;  // seen so far
  double loss = 0;          // training cross-entropy before the update, mean over its tokens, nats
  double lr_factor = 0;
  double grad_norm = 0;  // before clipping
};

// A loss or gradient that is not finite: the update was not made.
struct NotFinite {
  std::int64_t step = 0;  // that would have been
  double loss = 0, grad_norm = 0;
  std::string largest;  // the parameter with the largest gradient
};

class Trainer {
 public:
  // The corpus must outlive the trainer.
  Trainer(const DecoderConfig& model, const TrainOptions& options, std::uint64_t seed, const Corpus& corpus,
          const ComputeDevice& device);

  // One update. Throws NotFinite.
  StepRecord step();

  [[nodiscard]] ProbeResult probe(bool with_loss) const;

  [[nodiscard]] const Decoder& model() const { return model_; }
  [[nodiscard]] const Optimizers& optimizers() const { return optimizers_; }
  [[nodiscard]] std::int64_t steps_done() const { return steps_done_; }
  [[nodiscard]] std::int64_t tokens_done() const { return steps_done_ * options_.tokens_per_step(); }
  [[nodiscard]] double epochs_done() const { return order_.epochs_at(position_); }

  // The place in the data: with weights and optimizers, the whole state.
  [[nodiscard]] std::int64_t position() const { return position_; }
  void go_to(std::int64_t steps_done, std::int64_t position);

 private:
  Batch next_batch();
  [[nodiscard]] std::string largest_gradient() const;

  TrainOptions options_;
  const Corpus& corpus_;
  ComputeDevice device_;
  Decoder model_;
  Optimizers optimizers_;
  std::vector<std::pair<std::string, at::Tensor>> trained_;  // parameters that have gradients
  BlockOrder order_;
  std::vector<Batch> validation_;
  std::int64_t steps_done_ = 0;
  std::int64_t position_ = 0;  // blocks taken
};

}  // namespace headscope
