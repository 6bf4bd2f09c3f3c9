#include "optim/adamw.h"

namespace headscope {

AdamW::AdamW(NamedTensors parameters, AdamWOptions options) : options_(options), parameters_(std::move(parameters)) {
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

}  // namespace headscope
