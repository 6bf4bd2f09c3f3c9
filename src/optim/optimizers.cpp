#include "optim/optimizers.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace headscope {
namespace {

// AdamW on what the matrices of the layers leave, each with its decay.
AdamW make_adamw(const Decoder& model, const OptimizerOptions& options) {
  NamedTensors parameters;
  std::vector<Decay> decays;
  for_each_parameter(model, [&](const std::string& name, ParameterKind kind, const at::Tensor& value) {
    if (!value.requires_grad() || kind == ParameterKind::matrix) return;
    parameters.emplace_back(name, value);
    decays.push_back(decay_of(options, kind));
  });
  return {std::move(parameters), options.adamw, std::move(decays)};
}

}  // namespace

Decay decay_of(const OptimizerOptions& options, ParameterKind kind) {
  if (kind == ParameterKind::qk_gain) return {options.decay_of_gains(), options.gain_decay_target};
  return {kind == ParameterKind::embedding ? options.decay_of_embedding() : options.adamw.weight_decay};
}

Optimizers::Optimizers(const Decoder& model, const OptimizerOptions& options)
    : options_(options),
      matrices_(layer_matrices(model)),
      muon_(matrices_, options.muon),
      adamw_(make_adamw(model, options)) {
  for_each_parameter(model, [&](const std::string& name, ParameterKind, const at::Tensor& value) {
    parameters_.emplace_back(name, value);
  });
}

void Optimizers::step(double lr_factor) {
  HEADSCOPE_CHECK(!device_, "gradients are kept: updates are DeviceUpdates");
  muon_.step(options_.muon_lr * lr_factor);
  adamw_.step(options_.adamw_lr * lr_factor);
}

void Optimizers::keep_gradients() {
  if (device_) return;
  device_.emplace(matrices_, muon_.state(), adamw_, options_);
  muon_ = Muon({}, options_.muon);  // gives its memory back
}

void Optimizers::keep_copies(const NamedTensors& copies) {
  HEADSCOPE_CHECK(device_, "keep_gradients comes first");
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs;
  for (const auto& [name, copy] : copies) {
    const auto parameter = std::ranges::find(parameters_, name, &NamedTensors::value_type::first);
    HEADSCOPE_CHECK(parameter != parameters_.end(), "{} is no parameter", name);
    pairs.emplace_back(parameter->second, copy);
  }
  device_->keep_copies(std::move(pairs));
}

void Optimizers::step(const DeviceUpdate& update, double limit) {
  HEADSCOPE_CHECK(device_, "keep_gradients comes first");
  device_->run(update, limit);
}

NamedTensors Optimizers::state() const {
  auto state = device_ ? device_->momentum() : muon_.state();
  for (auto& entry : adamw_.state()) state.push_back(std::move(entry));
  return state;
}

double clip_gradients(const std::vector<at::Tensor>& parameters, double limit) {
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters) gradients.push_back(parameter.grad());
  const double norm = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients))).item<double>();
  if (std::isfinite(norm) && norm > limit) at::_foreach_mul_(gradients, limit / norm);
  return norm;
}

double learning_rate_factor(const ScheduleOptions& options, std::int64_t step, std::int64_t steps) {
  if (step < options.warmup_steps) return static_cast<double>(step + 1) / static_cast<double>(options.warmup_steps);
  if (options.kind == Schedule::constant) return 1;
  const auto left = static_cast<double>(std::max<std::int64_t>(1, steps - 1 - options.warmup_steps));
  const double done = std::min(1.0, static_cast<double>(step - options.warmup_steps) / left);
  return options.final_share + (1 - options.final_share) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

}  // namespace headscope
