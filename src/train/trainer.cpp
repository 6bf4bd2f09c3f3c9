#include "train/trainer.h"

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

std::vector<at::Tensor> values_of(const NamedTensors& named) {
  std::vector<at::Tensor> values;
  for (const auto& [name, value] : named) values.push_back(value);
  return values;
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
                 const ComputeDevice& device)
    : options_(options),
      corpus_(corpus),
      device_(device),
      model_(to_be_trained(std::move(model), options.qk_gain)),
      optimizers_(model_, options.optim),
      trained_(trained_parameters(model_)),
      order_(corpus.train.size(), options.seq_len, seed),
      validation_(validation_batches(options, corpus, device)),
      device_updates_(make_device_updates(model_, optimizers_, options_, device)) {
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
  const DeviceUpdates::Outcome outcome = device_updates_->wait();
  done->loss = outcome.loss;
  done->grad_norm = outcome.grad_norm;
  check(*done);
  return done;
}

// An update whose numbers are not finite was not made.
void Trainer::check(const StepRecord& update) {
  if (std::isfinite(update.loss) && std::isfinite(update.grad_norm)) return;
  steps_done_ = update.before.step;
  // On the device, the gradients are those of the update behind it by now.
  const std::string largest =
      device_updates_ ? std::string() : fmt::format("; the largest gradient is that of {}", largest_gradient());
  throw NotFinite(fmt::format("step {}: loss {}, gradient norm {}: not finite{}", update.after.step, update.loss,
                              update.grad_norm, largest));
}

// Of forward step i of the next update, in memory of the host.
Batch Trainer::batch(std::int64_t i) {
  return training_batch(options_, corpus_.train, order_, position() + i * options_.batch, device_);
}

void Trainer::step_by_autograd(StepRecord& update) {
  const Observe observe = update.measurer ? update.measurer->hooks().observe : Observe();
  at::Tensor loss = at::zeros({}, at::TensorOptions(device_.device).dtype(at::kFloat));
  for (std::int64_t i = 0; i < options_.accumulation; ++i)
    torch::autograd::backward({forward(to_device(batch(i), device_), i == 0 ? observe : Observe(), loss)}, {});
  update.grad_norm = clip_gradients(values_of(trained_), options_.clip);
  update.loss = loss.item<double>();
  check(update);
  optimizers_.step(update.lr_factor);
  for (auto& [name, value] : trained_) value.mutable_grad().reset();
  ++steps_done_;
  if (update.measurer) update.measurer->send();
}

// What is minimised, as this batch's share of the update; its cross-entropy is added to `loss`.
at::Tensor Trainer::forward(const Batch& batch, const Observe& observe, at::Tensor& loss) const {
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

std::string Trainer::largest_gradient() const {
  std::string largest;
  double largest_norm = -1;
  for (const auto& [name, value] : trained_) {
    double norm = value.grad().norm().item<double>();
    if (std::isnan(norm)) norm = std::numeric_limits<double>::infinity();
    if (norm <= largest_norm) continue;
    largest_norm = norm;
    largest = name;
  }
  return largest;
}

ProbeResult Trainer::probe(const MetricSelection& chosen, bool with_loss, bool with_errors) const {
  return probe_model(model_, validation_, device_.type, chosen, with_loss, with_errors);
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
