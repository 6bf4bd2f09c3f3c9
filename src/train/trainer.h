// A model in training: weights, optimizers, and the place in the data.
#pragma once

#include "core/console.h"
#include "data/corpus.h"
#include "heads/metrics.h"
#include "model/decoder.h"
#include "optim/optimizers.h"
#include "probe/probe.h"
#include "settings/train_options.h"
#include "train/device_updates.h"

namespace headscope {

// An update. Loss and norm are known when it is done.
struct StepRecord {
  Moment before, after;  // of the weights that it was computed and measured with, and of those that it made
  double loss = 0;       // training cross-entropy before the update, mean over its tokens, nats
  double lr_factor = 0;
  double grad_norm = 0;                         // before clipping
  std::vector<double> seconds = {};             // that each rank took for its forward steps (slow_ranks.h)
  Clock::time_point start = Clock::now();       // when it was queued
  std::unique_ptr<HeadMeasurer> measurer = {};  // to be finished; null: it was not measured
};

// A loss or gradient that is not finite: the update was not made.
struct NotFinite : Error {
  explicit NotFinite(const std::string& what_was_found)
      : Error(Fault::runtime, fmt::format("{}; {}", what_was_found, advice)), found(what_was_found) {}

  static constexpr std::string_view advice = "a smaller learning rate (optim.muon_lr, optim.adamw_lr) may help";
  std::string found;  // the step, its numbers, and of autograd's updates the parameter with the largest gradient
};

// Mean over tokens and heads of max|k_i|: what train.max_abs_penalty weighs.
at::Tensor mean_largest_component(const at::Tensor& k_bthd);

// Throws Error(Fault::input) where the options ask for what the device cannot do for such a model.
void check_device(const DecoderConfig& model, const TrainOptions& options, at::Device device);

class Trainer {
 public:
  // Trains these weights, which are shared. Corpus and ranks must outlive the trainer. `seed`: of the order of the
  // data. On several ranks every rank has a trainer of the same weights, and they make the same calls in the same
  // order.
  Trainer(Decoder model, const TrainOptions& options, std::uint64_t seed, const Corpus& corpus,
          const ComputeDevice& device, const Ranks& ranks = Ranks::one());
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // One update; what is chosen is measured in its first forward step. Returns the update that is done: this one where
  // updates are autograd's, otherwise the one before, and the device goes on meanwhile. Throws NotFinite, of the update
  // that would be returned; the weights are then those before it, and the trainer makes no further one.
  std::optional<StepRecord> step(const MetricSelection* chosen = nullptr);
  // The last update if step() has not returned it.
  std::optional<StepRecord> wait();

  // A signal asked to stop. Several ranks agree on that with each update.
  [[nodiscard]] bool stop_requested() const;

  // On several ranks, the first one measures; the loss is that of all.
  [[nodiscard]] ProbeResult probe(const MetricSelection& chosen, bool with_loss, bool with_errors = false) const;
  // Those that probe() gives, by themselves.
  [[nodiscard]] RankErrors rank_errors(const MetricSelection& chosen) const;

  [[nodiscard]] const Decoder& model() const { return model_; }
  [[nodiscard]] const TrainOptions& options() const { return options_; }
  [[nodiscard]] const Ranks& ranks() const { return ranks_; }
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
  [[nodiscard]] Batch batch(std::int64_t i);
  at::Tensor forward(const Batch& batch, const Observe& observe, at::Tensor loss) const;
  void step_by_autograd(StepRecord& update);
  void check(const StepRecord& update, const std::function<std::string()>& details);
  [[nodiscard]] std::string rank_of(const std::vector<double>& losses) const;

  TrainOptions options_;
  const Corpus& corpus_;
  ComputeDevice device_;
  Decoder model_;
  Optimizers optimizers_;
  NamedTensors trained_;  // parameters that have gradients
  BlockOrder order_;
  std::vector<Batch> validation_;  // of several ranks: those of this one, every so many
  const Ranks& ranks_;
  bool stop_agreed_ = false;
  std::int64_t steps_done_ = 0;
  std::unique_ptr<DeviceUpdates> device_updates_;  // null: updates are autograd's
  std::optional<StepRecord> launched_;             // under way: its loss and norm are not known yet
};

}  // namespace headscope
