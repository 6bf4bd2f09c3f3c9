#include "train/trainer.h"

#include "core/interrupt.h"

namespace headscope {
namespace {

// Every parameter requires a gradient, but for gains of QK-Norm that are fixed.
Decoder to_be_trained(Decoder model, QkGain qk_gain) {
  for_each_parameter(model, [&](const std::string&, ParameterKind kind, const at::Tensor& value) {
    value.set_requires_grad(kind != ParameterKind::qk_gain || qk_gain == QkGain::learned);
  });
  return model;
}

NamedTensors trained_parameters(const Decoder& model) {
  NamedTensors trained;
  for_each_parameter(model, [&](const std::string& name, ParameterKind, const at::Tensor& value) {
    if (value.requires_grad()) trained.emplace_back(name, value);
  });
  return trained;
}

// Every so many, from that of the rank on.
std::vector<Batch> dealt_to(const Ranks& ranks, const std::vector<Batch>& batches) {
  std::vector<Batch> own;
  for (auto i = static_cast<std::size_t>(ranks.rank()); i < batches.size(); i += static_cast<std::size_t>(ranks.size()))
    own.push_back(batches[i]);
  return own;
}

// The loss of an update, added in the order of its forward steps.
double added_in_order(const at::Tensor& losses) {
  float sum = 0;
  for (std::int64_t i = 0; i < losses.numel(); ++i) sum += losses[i].item<float>();
  return sum;
}

}  // namespace

at::Tensor mean_largest_component(const at::Tensor& k_bthd) {
  return k_bthd.abs().amax(-1).mean().to(k_bthd.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
}

void check_device(const DecoderConfig& model, const TrainOptions& options, at::Device device) {
  if (!device.is_cuda()) return;
  if (options.deterministic && model.d_model % 4 != 0)  // the embedding's gradient has no kernel
    fail_input("train.deterministic on a GPU: model.d_model is {}; take a multiple of 4, or --device cpu",
               model.d_model);
  if (has_device_updates(model, options, device)) return;
  if (options.deterministic || options.recompute)
    fail_input(
        "train.{} on a GPU is for models that are trained without autograd: squared_relu and no max_abs_penalty; leave "
        "it out, or use --device cpu",
        options.deterministic ? "deterministic" : "recompute");
}

Trainer::Trainer(Decoder model, const TrainOptions& options, std::uint64_t seed, const Corpus& corpus,
                 const ComputeDevice& device, const Ranks& ranks)
    : options_(options),
      corpus_(corpus),
      device_(device),
      model_(to_be_trained(std::move(model), options.qk_gain)),
      optimizers_(model_, options.optim, {ranks.rank(), ranks.size(), ranks.connected()}),
      trained_(trained_parameters(model_)),
      order_(corpus.train.size(), options.seq_len, seed),
      validation_(dealt_to(ranks, validation_batches(options, corpus, device))),
      ranks_(ranks),
      device_updates_(make_device_updates(model_, optimizers_, options_, device, ranks)) {
  check_device(model_.config, options_, device.device);
}

std::optional<StepRecord> Trainer::step(const MetricSelection* chosen) {
  StepRecord update{.before = {steps_done_, tokens_done()},
                    .after = {steps_done_ + 1, tokens_done() + options_.tokens_per_step()},
                    .lr_factor = learning_rate_factor(options_.schedule, steps_done_, options_.steps())};
  if (chosen != nullptr) {
    update.measurer = std::make_unique<HeadMeasurer>(*chosen);
    update.measurer->observe_gains(model_);
  }
  if (!device_updates_) {
    step_by_autograd(update);
    return update;
  }
  device_updates_->launch([&](std::int64_t i) { return batch(i); }, update.lr_factor, update.measurer.get());
  std::optional<StepRecord> done = wait();
  ++steps_done_;
  launched_ = std::move(update);
  return done;
}

std::optional<StepRecord> Trainer::wait() {
  std::optional<StepRecord> done = std::exchange(launched_, std::nullopt);
  if (!done) return done;
  ranks_.at_step(done->after.step);
  DeviceUpdates::Outcome outcome = device_updates_->wait();
  done->loss = outcome.loss;
  done->grad_norm = outcome.grad_norm;
  done->seconds = std::move(outcome.seconds);
  stop_agreed_ = outcome.stop;
  // On the device, the gradients are those of the update behind it by now.
  check(*done, [&] { return rank_of(outcome.losses); });
  return done;
}

// An update whose numbers are not finite was not made.
void Trainer::check(const StepRecord& update, const std::function<std::string()>& details) {
  if (std::isfinite(update.loss) && std::isfinite(update.grad_norm)) return;
  steps_done_ = update.before.step;
  throw NotFinite(fmt::format("step {}: loss {}, gradient norm {}: not finite{}", update.after.step, update.loss,
                              update.grad_norm, details()));
}

// The rank that made the first forward step whose loss is not finite.
std::string Trainer::rank_of(const std::vector<double>& losses) const {
  const auto found = std::ranges::find_if(losses, [](double loss) { return !std::isfinite(loss); });
  if (!ranks_.several() || found == losses.end()) return "";
  return fmt::format(" on rank {} of {}", (found - losses.begin()) % ranks_.size(), ranks_.size());
}

// Of forward step i of the next update, in memory of the host.
Batch Trainer::batch(std::int64_t i) {
  return training_batch(options_, corpus_.train, order_, position() + i * options_.batch, device_);
}

// Forward step i is that of rank i mod ranks. Ranks exchange the gradients of what they own, a few numbers, and the new
// weights; one rank has all of them.
void Trainer::step_by_autograd(StepRecord& update) {
  ranks_.at_step(update.after.step);
  const Observe observe = update.measurer ? update.measurer->hooks().observe : Observe();
  const auto options = at::TensorOptions(device_.device).dtype(at::kFloat);
  const at::Tensor own_losses = at::zeros({options_.accumulation}, options);
  double own_seconds = 0;
  Shares& shares = optimizers_.shares();
  for (std::int64_t i = ranks_.rank(); i < options_.accumulation; i += ranks_.size()) {
    const auto start = Clock::now();
    torch::autograd::backward({forward(to_device(batch(i), device_), i == 0 ? observe : Observe(), own_losses[i])}, {});
    own_seconds += seconds_since(start);
    shares.add_gradients(ranks_, /*is_last=*/i + ranks_.size() >= options_.accumulation);
  }
  const at::Tensor own_norms = shares.norms();
  const at::Tensor own_flags = at::zeros({1 + ranks_.size()}, at::kFloat);  // to stop, and the seconds of each rank
  own_flags[0].fill_(interrupt_requested() ? 1 : 0);
  own_flags[1 + ranks_.rank()].fill_(update.measurer ? 0 : own_seconds);
  const at::Tensor all = ranks_.all_reduce(at::cat({own_losses.cpu(), own_norms.cpu(), own_flags}));
  const at::Tensor losses = all.narrow(0, 0, own_losses.numel());
  const at::Tensor norms = all.narrow(0, losses.numel(), own_norms.numel());
  const at::Tensor flags = all.narrow(0, losses.numel() + norms.numel(), own_flags.numel());

  update.loss = added_in_order(losses);
  update.grad_norm = shares.clip(norms, options_.clip);
  stop_agreed_ = flags[0].item<float>() > 0;
  for (int rank = 0; rank < ranks_.size(); ++rank) update.seconds.push_back(flags[1 + rank].item<double>());
  check(update, [&] {
    const auto* begin = losses.const_data_ptr<float>();
    return fmt::format("{}; the largest gradient is that of {}", rank_of({begin, begin + losses.numel()}),
                       shares.largest(norms));
  });
  optimizers_.step(update.lr_factor);
  shares.spread_weights(ranks_);
  for (auto& [name, value] : trained_) value.mutable_grad().reset();
  ++steps_done_;
  if (update.measurer) update.measurer->send();
}

// What is minimised, as this batch's share of the update; its cross-entropy is added to `loss`.
at::Tensor Trainer::forward(const Batch& batch, const Observe& observe, at::Tensor loss) const {
  Hooks hooks{.observe = observe};
  at::Tensor largest = at::zeros({}, loss.options());  // summed over layers
  if (options_.max_abs_penalty > 0) {
    hooks.observe = [&](std::int64_t layer, const HeadVectors& vectors) {
      if (observe) observe(layer, vectors);
      largest = largest + mean_largest_component(vectors.k_bthd);
    };
  }
  const auto shares = static_cast<double>(options_.accumulation);
  const at::Tensor share = next_token_loss(model_, batch.tokens_bt, batch.targets_bt, device_.type, hooks) / shares;
  loss += share.detach();
  if (options_.max_abs_penalty == 0) return share;
  return share + largest * (options_.max_abs_penalty / shares / static_cast<double>(model_.config.layers));
}

bool Trainer::stop_requested() const {
  return ranks_.several() ? stop_agreed_ : interrupt_requested();
}

ProbeResult Trainer::probe(const MetricSelection& chosen, bool with_loss, bool with_errors) const {
  ProbeResult result;
  if (ranks_.first())
    result = probe_model(model_, validation_, device_.type, chosen, with_loss, with_errors);
  else if (with_loss)
    result.losses = batch_losses(model_, validation_, device_.type);
  if (!with_loss || !ranks_.several()) return result;
  const at::Tensor losses = at::zeros({options_.validation_batches}, at::kDouble);
  for (std::size_t i = 0; i < result.losses.size(); ++i)
    losses[ranks_.rank() + static_cast<std::int64_t>(i) * ranks_.size()].fill_(result.losses[i]);
  const at::Tensor all = ranks_.all_reduce(losses);
  result.losses.assign(all.const_data_ptr<double>(), all.const_data_ptr<double>() + all.numel());
  result.val_loss = mean_loss(result.losses);
  return result;
}

RankErrors Trainer::rank_errors(const MetricSelection& chosen) const {
  return measure_rank_errors(model_, validation_.front().tokens_bt, chosen);
}

void Trainer::go_to(std::int64_t steps_done) {
  steps_done_ = steps_done;
  if (device_updates_) device_updates_->parameters_changed();
}

bool Trainer::time_parts(PartTimer* timer) {
  if (device_updates_) device_updates_->time_parts(timer);
  return device_updates_ != nullptr;
}

}  // namespace headscope
