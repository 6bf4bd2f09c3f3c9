#include "optim/optimizers.h"

namespace headscope {
namespace {

// Queries, keys, values and output are one matrix, as in the source study; where the output's width differs it stands
// alone.
std::vector<MuonMatrix> muon_matrices(const Decoder& model) {
  std::vector<MuonMatrix> matrices;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const DecoderLayer& layer = model.layers[i];
    const std::string prefix = "layers." + std::to_string(i) + ".";
    if (layer.output.size(1) == layer.qkv.size(1)) {
      matrices.push_back({prefix + "attention", {layer.qkv, layer.output}});
    } else {
      matrices.push_back({prefix + "attention.qkv", {layer.qkv}});
      matrices.push_back({prefix + "attention.output", {layer.output}});
    }
    matrices.push_back({prefix + "feed_forward.up", {layer.up}});
    matrices.push_back({prefix + "feed_forward.down", {layer.down}});
  }
  return matrices;
}

NamedTensors adamw_parameters(const Decoder& model) {
  NamedTensors parameters;
  for_each_parameter(model, [&](const std::string& name, const at::Tensor& value) {
    const bool of_layer_matrix = value.dim() == 2 && name.starts_with("layers.");
    if (value.requires_grad() && !of_layer_matrix) parameters.emplace_back(name, value);
  });
  return parameters;
}

}  // namespace

Optimizers::Optimizers(const Decoder& model, const OptimizerOptions& options)
    : options_(options), muon_(muon_matrices(model), options.muon), adamw_(adamw_parameters(model), options.adamw) {}

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
