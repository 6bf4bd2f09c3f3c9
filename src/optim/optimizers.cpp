#include "optim/optimizers.h"

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

}  // namespace headscope
