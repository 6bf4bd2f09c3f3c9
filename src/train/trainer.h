// A model in training: weights, optimizers, and the place in the data.
#pragma once

#include "data/corpus.h"
#include "model/decoder.h"
#include "optim/optimizers.h"
#include "probe/probe.h"
#include "settings/train_options.h"
#include "train/device_updates.h"

namespace headscope {

struct StepRecord {
  std::int64_t step = 0;    // updates done, this one included
  std::int64_t tokens = 0;  // seen so far
  double loss = 0;          // training cross-entropy before the update, mean over its tokens, nats
  double lr_factor = 0;
  double grad_norm = 0;  // before clipping
};

// A loss or gradient that is not finite: the update was not made.
struct NotFinite : Error {
  explicit NotFinite(const std::string& what_was_found)
      : Error(Fault::runtime, fmt::format("{}; {}", what_was_found, advice)), found(what_was_found) {}

  static constexpr std::string_view advice = "a smaller learning rate (optim.muon_lr, optim.adamw_lr) may help";
  std::string found;  // the step, its numbers, and the parameter with the largest gradient
};

// Mean over tokens and heads of max|k_i|: what train.max_abs_penalty weighs.
at::Tensor mean_largest_component(const at::Tensor& k_bthd);

// Throws Error(Fault::input) where the options ask for what the device cannot do for such a model.
void check_device(const DecoderConfig& model, const TrainOptions& options, at::Device device);

class Trainer {
 public:
  // Trains these weights, which are shared. The corpus must outlive the trainer. `seed`: of the order of the data.
  Trainer(Decoder model, const TrainOptions& options, std::uint64_t seed, const Corpus& corpus,
          const ComputeDevice& device);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // One update; its first forward step is measured where a measurer is given, which sends what it has. Returns the
  // newest record that is known: of this update where the host computes it, of the one before on a GPU, which goes on
  // meanwhile. Throws NotFinite, of the update that the record would be of; the weights are then those before it.
  std::optional<StepRecord> step(HeadMeasurer* measurer = nullptr);
  // The record of the last update if step() has not returned it.
  std::optional<StepRecord> wait();

  [[nodiscard]] ProbeResult probe(const MetricSelection& chosen, bool with_loss) const;

  [[nodiscard]] const Decoder& model() const { return model_; }
  [[nodiscard]] const TrainOptions& options() const { return options_; }
  [[nodiscard]] const Optimizers& optimizers() const { return optimizers_; }
  [[nodiscard]] std::int64_t steps_done() const { return steps_done_; }
  [[nodiscard]] std::int64_t tokens_done() const { return steps_done_ * options_.tokens_per_step(); }
  // The place in the data: blocks taken.
  [[nodiscard]] std::int64_t position() const { return steps_done_ * options_.accumulation * options_.batch; }
  // With weights and optimizers, the number of steps is the whole state.
  void go_to(std::int64_t steps_done);
  // Times the parts of updates; null: no longer. False where that cannot be done: updates are autograd's.
  bool time_parts(PartTimer* timer);

 private:
  at::Tensor forward(const Batch& batch, const Observe& observe, at::Tensor& loss) const;
  [[nodiscard]] StepRecord step_by_autograd(const Observe& observe);
  [[nodiscard]] StepRecord checked(const StepRecord& record);
  [[nodiscard]] std::string largest_gradient() const;

  TrainOptions options_;
  const Corpus& corpus_;
  ComputeDevice device_;
  Decoder model_;
  Optimizers optimizers_;
  NamedTensors trained_;  // parameters that have gradients
  BlockOrder order_;
  std::vector<Batch> validation_;
  std::int64_t steps_done_ = 0;
  std::unique_ptr<DeviceUpdates> device_updates_;  // null: updates are autograd's
  std::optional<StepRecord> launched_;             // whose loss and norm are not known yet
};

}  // namespace headscope
