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
      validation_(validation_batches(options, corpus.validation, device)),
      device_updates_(make_device_updates(model_, optimizers_, options_, device)) {
  check_device(model_.config, options_, device.device);
}

std::optional<StepRecord> Trainer::step(HeadMeasurer* measurer) {
  if (!device_updates_) {
    const StepRecord record = step_by_autograd(measurer != nullptr ? measurer->hooks().observe : Observe());
    if (measurer != nullptr) measurer->send();
    return record;
  }
  const std::int64_t first = position();
  const double lr_factor = learning_rate_factor(options_.schedule, steps_done_, options_.steps());
  device_updates_->launch(
      [&](std::int64_t i) {
        return training_batch(options_, corpus_.train, order_, first + i * options_.batch, device_);
      },
      lr_factor, measurer);
  const std::optional<StepRecord> known = wait();
  ++steps_done_;
  launched_ = {.step = steps_done_, .tokens = tokens_done(), .lr_factor = lr_factor};
  return known;
}

std::optional<StepRecord> Trainer::wait() {
  if (!launched_) return std::nullopt;
  StepRecord record = *launched_;
  launched_.reset();
  const DeviceUpdates::Outcome outcome = device_updates_->wait();
  record.loss = outcome.loss;
  record.grad_norm = outcome.grad_norm;
  return checked(record);
}

// A record that is not finite is of an update that was not made.
StepRecord Trainer::checked(const StepRecord& record) {
  if (std::isfinite(record.loss) && std::isfinite(record.grad_norm)) return record;
  steps_done_ = record.step - 1;
  throw NotFinite(fmt::format("step {}: loss {}, gradient norm {}: not finite; the largest gradient is that of {}",
                              record.step, record.loss, record.grad_norm, largest_gradient()));
}

StepRecord Trainer::step_by_autograd(const Observe& observe) {
  const double lr_factor = learning_rate_factor(options_.schedule, steps_done_, options_.steps());
  at::Tensor loss = at::zeros({}, at::TensorOptions(device_.device).dtype(at::kFloat));
  for (std::int64_t i = 0; i < options_.accumulation; ++i) {
    const Batch batch = training_batch(options_, corpus_.train, order_, position() + i * options_.batch, device_);
    torch::autograd::backward({forward(batch, i == 0 ? observe : Observe(), loss)}, {});
  }
  const double grad_norm = clip_gradients(values_of(trained_), options_.clip);
  const StepRecord record = checked({.step = steps_done_ + 1,
                                     .tokens = tokens_done() + options_.tokens_per_step(),
                                     .loss = loss.item<double>(),
                                     .lr_factor = lr_factor,
                                     .grad_norm = grad_norm});
  optimizers_.step(lr_factor);
  for (auto& [name, value] : trained_) value.mutable_grad().reset();
  ++steps_done_;
  return record;
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

ProbeResult Trainer::probe(const MetricSelection& chosen, bool with_loss) const {
  return probe_model(model_, validation_, device_.type, chosen, with_loss);
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
