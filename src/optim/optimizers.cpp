#include "optim/optimizers.h"

#include <cmath>
#include <numbers>

namespace headscope {
namespace {

NamedTensors adamw_parameters(const Decoder& model) {
  NamedTensors parameters;
  for_each_parameter(model, [&](const std::string& name, ParameterKind kind, const at::Tensor& value) {
    if (value.requires_grad() && kind != ParameterKind::matrix) parameters.emplace_back(name, value);
  });
  return parameters;
}

}  // namespace

AdamW::AdamW(NamedTensors parameters, AdamWOptions options) : options_(options), parameters_(std::move(parameters)) {
  for (const auto& [name, value] : parameters_) {
    first_.push_back(at::zeros_like(value, at::MemoryFormat::Contiguous).set_requires_grad(false));
    second_.push_back(at::zeros_like(first_.back()));
    steps_.push_back(at::zeros({}, value.options().dtype(at::kFloat).requires_grad(false)));
  }
}

void AdamW::step(double lr) {
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> values, gradients;
  for (const auto& [name, value] : parameters_) {
    values.push_back(value);
    gradients.push_back(value.grad());
  }
  at::_foreach_add_(steps_, 1);
  at::_fused_adamw_(values, gradients, first_, second_, /*max_exp_avg_sqs=*/{}, steps_, lr, options_.beta1,
                    options_.beta2, options_.weight_decay, options_.eps, /*amsgrad=*/false, /*maximize=*/false);
}

NamedTensors AdamW::state() const {
  NamedTensors state;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    state.emplace_back("adamw.first." + parameters_[i].first, first_[i]);
    state.emplace_back("adamw.second." + parameters_[i].first, second_[i]);
    state.emplace_back("adamw.steps." + parameters_[i].first, steps_[i]);
  }
  return state;
}

Optimizers::Optimizers(const Decoder& model, const OptimizerOptions& options)
    : options_(options), muon_(layer_matrices(model), options.muon), adamw_(adamw_parameters(model), options.adamw) {}

void Optimizers::step(double lr_factor) {
  muon_.step(options_.muon_lr * lr_factor);
  adamw_.step(options_.adamw_lr * lr_factor);
}

NamedTensors Optimizers::state() const {
  auto state = muon_.state();
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
