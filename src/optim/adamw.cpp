#include "optim/adamw.h"

#include <algorithm>

#include "core/error.h"

namespace headscope {

AdamW::AdamW(NamedTensors parameters, AdamWOptions options, std::vector<Decay> decays)
    : options_(options), parameters_(std::move(parameters)), decays_(std::move(decays)) {
  if (decays_.empty()) decays_.assign(parameters_.size(), {options_.weight_decay});
  HEADSCOPE_CHECK(decays_.size() == parameters_.size(), "{} decays of {} parameters", decays_.size(),
                  parameters_.size());
  if (parameters_.empty()) return;
  const auto count = static_cast<std::int64_t>(parameters_.size());
  all_steps_ = at::zeros({count}, parameters_.front().second.options().dtype(at::kFloat).requires_grad(false));
  for (const auto& [name, value] : parameters_) {
    first_.push_back(at::zeros_like(value, at::MemoryFormat::Contiguous).set_requires_grad(false));
    second_.push_back(at::zeros_like(first_.back()));
    steps_.push_back(all_steps_[static_cast<std::int64_t>(steps_.size())]);
  }
}

void AdamW::step(double lr) {
  const at::NoGradGuard no_gradients;
  if (parameters_.empty()) return;
  at::_foreach_add_(steps_, 1);
  std::vector<Decay> done;
  for (const Decay& decay : decays_) {
    if (std::ranges::find(done, decay) != done.end()) continue;
    done.push_back(decay);
    step_those_with(decay, lr);
  }
}

void AdamW::step_those_with(const Decay& decay, double lr) {
  std::vector<at::Tensor> values, gradients, first, second, steps;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (decays_[i] != decay) continue;
    values.push_back(parameters_[i].second);
    gradients.push_back(values.back().grad());
    first.push_back(first_[i]);
    second.push_back(second_[i]);
    steps.push_back(steps_[i]);
  }
  at::_fused_adamw_(values, gradients, first, second, /*max_exp_avg_sqs=*/{}, steps, lr, options_.beta1, options_.beta2,
                    decay.rate, options_.eps, /*amsgrad=*/false, /*maximize=*/false);
  // Fused AdamW decays towards 0; its step does not depend on the value.
  if (const double pull = lr * decay.rate * decay.target; pull != 0) at::_foreach_add_(values, pull);
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

}  // namespace headscope
