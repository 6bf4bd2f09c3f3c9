#include "model/decoder.h"

#include <ATen/CPUGeneratorImpl.h>

#include "ops/attention.h"
#include "ops/linear_cross_entropy.h"
#include "ops/rms_norm.h"
#include "ops/squared_relu.h"

namespace headscope {
namespace {

// The angles for sequences of this length; made when a longer one than before comes.
const at::Tensor& rotary_for(const Decoder& model, std::int64_t length) {
  at::Tensor& table = *model.rotary;
  if (!table.defined() || table.size(0) < length) {
    const at::ScalarType type = model.embedding.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    table = rotary_table(length, model.config.d_k, model.config.rope_base, type).to(model.embedding.device());
  }
  return table;
}

at::Tensor attention(const Decoder& model, std::int64_t index, const at::Tensor& x_btm, const Hooks& hooks) {
  const DecoderConfig& c = model.config;
  const DecoderLayer& layer = model.layers[static_cast<std::size_t>(index)];
  const at::ScalarType type = x_btm.scalar_type();
  const at::Tensor h_btm = rms_norm(x_btm, layer.attention_norm, c.norm_eps);
  const at::Tensor qkv_bthd = at::linear(h_btm, layer.qkv.to(type)).unflatten(-1, {-1, c.d_k});
  const auto parts = qkv_bthd.split_with_sizes({c.heads + c.kv_heads, c.kv_heads}, 2);
  at::Tensor qk_bthd = parts[0];
  const at::Tensor& v_bthd = parts[1];
  if (c.qk_norm) {
    const at::Tensor gain_hd =
        at::cat({layer.q_gain.expand({c.heads, c.d_k}), layer.k_gain.expand({c.kv_heads, c.d_k})});
    qk_bthd = rms_norm(qk_bthd, gain_hd, c.norm_eps);
  }
  const auto split = [&](const at::Tensor& x) { return x.split_with_sizes({c.heads, c.kv_heads}, 2); };
  if (hooks.edit_keys) {
    const auto given = split(qk_bthd);
    qk_bthd = at::cat({given[0], hooks.edit_keys(index, given[1])}, 2);
  }
  const auto qk = split(qk_bthd), rotated = split(rotate(qk_bthd, rotary_for(model, x_btm.size(1))));
  const HeadVectors vectors{qk[0], qk[1], v_bthd, rotated[0], rotated[1], 1 / std::sqrt(static_cast<double>(c.d_k))};
  if (hooks.observe) hooks.observe(index, vectors);
  const at::Tensor mixed_bthd = causal_attention(rotated[0], rotated[1], v_bthd, vectors.scale);
  return at::linear(mixed_bthd.flatten(-2), layer.output.to(type));
}

at::Tensor feed_forward(const Decoder& model, const DecoderLayer& layer, const at::Tensor& x_btm) {
  const at::ScalarType type = x_btm.scalar_type();
  const at::Tensor h_btm = rms_norm(x_btm, layer.feed_forward_norm, model.config.norm_eps);
  return at::linear(squared_relu(at::linear(h_btm, layer.up.to(type))), layer.down.to(type));
}

}  // namespace

std::vector<LayerMatrix> layer_matrices(const Decoder& model) {
  std::vector<LayerMatrix> matrices;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const DecoderLayer& layer = model.layers[i];
    const std::string prefix = "layers." + std::to_string(i) + ".";
    // Queries, keys, values and output are one matrix, as in the source study; an output of another width stands alone.
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

Decoder empty_decoder(const DecoderConfig& config, at::Device device) {
  validate(config);
  const DecoderConfig& c = config;
  const std::int64_t q = c.heads * c.d_k, kv = c.kv_heads * c.d_k;
  const auto empty = [&](std::initializer_list<std::int64_t> shape) {
    return at::empty(shape, at::TensorOptions(device).dtype(at::kFloat));
  };
  Decoder model{
      .config = config, .embedding = empty({c.vocabulary, c.d_model}), .layers = {}, .final_norm = empty({c.d_model})};
  for (std::int64_t i = 0; i < c.layers; ++i) {
    model.layers.push_back({.attention_norm = empty({c.d_model}),
                            .qkv = empty({q + 2 * kv, c.d_model}),
                            .q_gain = c.qk_norm ? empty({c.d_k}) : at::Tensor(),
                            .k_gain = c.qk_norm ? empty({c.d_k}) : at::Tensor(),
                            .output = empty({c.d_model, q}),
                            .feed_forward_norm = empty({c.d_model}),
                            .up = empty({c.d_ff, c.d_model}),
                            .down = empty({c.d_model, c.d_ff})});
  }
  return model;
}

Decoder make_decoder(const DecoderConfig& config, std::uint64_t seed, at::Device device) {
  const at::NoGradGuard no_gradients;
  Decoder model = empty_decoder(config);
  at::Generator generator = at::detail::createCPUGenerator(seed);
  for_each_parameter(model, [&](const std::string&, ParameterKind kind, at::Tensor& value) {
    if (kind == ParameterKind::embedding || kind == ParameterKind::matrix)
      value.normal_(0, config.init_std, generator);
    else
      value.fill_(1);
    value = value.to(device).set_requires_grad(true);
  });
  return model;
}

at::Tensor final_hidden(const Decoder& model, const at::Tensor& tokens_bt, at::ScalarType type, const Hooks& hooks) {
  const DecoderConfig& c = model.config;
  at::Tensor x_btm = at::embedding(model.embedding, tokens_bt).to(type) * std::sqrt(static_cast<double>(c.d_model));
  for (std::int64_t index = 0; index < c.layers; ++index) {
    x_btm = x_btm + attention(model, index, x_btm, hooks);
    x_btm = x_btm + feed_forward(model, model.layers[static_cast<std::size_t>(index)], x_btm);
  }
  return rms_norm(x_btm, model.final_norm, c.norm_eps);
}

at::Tensor next_token_loss(const Decoder& model, const at::Tensor& tokens_bt, const at::Tensor& targets_bt,
                           at::ScalarType type, const Hooks& hooks) {
  const at::Tensor hidden_nm = final_hidden(model, tokens_bt, type, hooks).flatten(0, 1);
  return linear_cross_entropy(hidden_nm, model.embedding, targets_bt.flatten());
}

}  // namespace headscope
