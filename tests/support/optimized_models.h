// Small models for tests of the optimizers: every kind of parameter, and shapes that no kernel likes.
#pragma once

#include <cmath>
#include <vector>

#include "model/decoder.h"
#include "settings/train_options.h"
#include "support/gradients.h"

namespace headscope::test {

// Three matrices of one size in each of four layers, so that 2 and 3 ranks share them in pieces without padding.
inline DecoderConfig even_config() {
  DecoderConfig even;
  even.vocabulary = 48;
  even.d_model = 64;
  even.layers = 4;
  even.heads = 4;
  even.kv_heads = 2;
  even.d_k = 16;
  even.d_ff = 192;
  return even;
}

inline std::vector<DecoderConfig> optimized_configs() {
  DecoderConfig merged;  // queries and output are one matrix
  merged.vocabulary = 101;
  merged.d_model = 96;
  merged.layers = 2;
  merged.heads = 3;
  merged.kv_heads = 1;
  merged.d_k = 32;
  merged.d_ff = 200;
  DecoderConfig odd;  // rows are no multiple of 16 bytes; the output stands alone
  odd.vocabulary = 37;
  odd.d_model = 30;
  odd.layers = 3;
  odd.heads = 3;
  odd.kv_heads = 3;
  odd.d_k = 6;
  odd.d_ff = 77;
  odd.qk_norm = false;
  odd.gated = true;
  odd.activation = Activation::silu;
  odd.tied_head = false;
  odd.bias = {.qkv = true, .output = true, .feed_forward = true};
  DecoderConfig scalar = merged;  // one gain for queries, one for keys
  scalar.qk_gain = QkGainShape::scalar;
  return {merged, odd, scalar, even_config()};
}

// A decay for each kind of parameter.
inline OptimizerOptions decay_options() {
  OptimizerOptions options;
  options.gain_decay.number = 5;
  options.gain_decay_target = 1;
  options.embedding_decay.number = 0.05;
  return options;
}

// Gains of QK-Norm are trained or fixed.
inline Decoder optimized_model(const DecoderConfig& config, bool fixed_gains, at::Device device, at::ScalarType type) {
  Decoder model = make_decoder(config, 5);
  for_each_parameter(model, [&](const std::string&, ParameterKind kind, at::Tensor& value) {
    value = value.detach().to(device, type, /*non_blocking=*/false, /*copy=*/true);
    value.set_requires_grad(kind != ParameterKind::qk_gain || !fixed_gains);
  });
  return model;
}

inline NamedTensors trained(const Decoder& model) {
  NamedTensors parameters;
  for_each_parameter(model, [&](const std::string& name, ParameterKind, const at::Tensor& value) {
    if (value.requires_grad()) parameters.emplace_back(name, value);
  });
  return parameters;
}

// The gradient of parameter `i` in update `step`, float32 values times `size`.
inline at::Tensor random_gradient(const at::Tensor& parameter, std::size_t i, std::int64_t step, double size) {
  const at::NoGradGuard no_gradients;
  return random_tensor(parameter.sizes(), 1000 * static_cast<std::uint64_t>(step + 1) + i, at::kFloat) * size;
}

inline std::vector<at::Tensor> values_of(const NamedTensors& named) {
  std::vector<at::Tensor> values;
  for (const auto& [name, value] : named) values.push_back(value);
  return values;
}

// The norm of all gradients together, which are scaled to `limit`: torch's clip_grad_norm_ by its definition.
inline double clip_gradients(const std::vector<at::Tensor>& parameters, double limit) {
  const at::NoGradGuard no_gradients;
  double squares = 0;
  for (const at::Tensor& parameter : parameters)
    squares += parameter.grad().to(at::kDouble).square().sum().item<double>();
  const double norm = std::sqrt(squares);
  for (const at::Tensor& parameter : parameters)
    if (norm > limit) parameter.grad().mul_(limit / norm);
  return norm;
}

}  // namespace headscope::test
