#include "model/decoder.h"

#include <ATen/CPUGeneratorImpl.h>

#include "ops/attention.h"
#include "ops/linear_cross_entropy.h"
#include "ops/rms_norm.h"
#include "ops/rotary.h"
#include "ops/squared_relu.h"

namespace headscope {
namespace {

bool is_frozen(const DecoderConfig& config, std::string_view name) {
  const bool qk_gain = name.ends_with("q_norm.gain") || name.ends_with("k_norm.gain");
  return qk_gain && config.qk_norm == QkNorm::frozen;
}

// Empty tensors of the right shapes.
void shape_parameters(Decoder& model) {
  const DecoderConfig& c = model.config;
  const std::int64_t q = c.heads * c.d_k, kv = c.kv_heads * c.d_k;
  model.embedding = at::empty({c.vocabulary, c.d_model});
  model.layers.resize(static_cast<std::size_t>(c.layers));
  for (DecoderLayer& layer : model.layers) {
    layer.attention_norm = at::empty({c.d_model});
    layer.qkv = at::empty({q + 2 * kv, c.d_model});
    if (c.qk_norm != QkNorm::none) {
      layer.q_gain = at::empty({c.d_k});
      layer.k_gain = at::empty({c.d_k});
    }
    layer.output = at::empty({c.d_model, q});
    layer.feed_forward_norm = at::empty({c.d_model});
    layer.up = at::empty({c.d_ff, c.d_model});
    layer.down = at::empty({c.d_model, c.d_ff});
  }
  model.final_norm = at::empty({c.d_model});
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
  if (c.qk_norm != QkNorm::none) {
    const at::Tensor gain_hd =
        at::cat({layer.q_gain.expand({c.heads, c.d_k}), layer.k_gain.expand({c.kv_heads, c.d_k})});
    qk_bthd = rms_norm(qk_bthd, gain_hd, c.norm_eps);
  }
  const auto split = [&](const at::Tensor& x) { return x.split_with_sizes({c.heads, c.kv_heads}, 2); };
  if (hooks.edit_keys) {
    const auto given = split(qk_bthd);
    qk_bthd = at::cat({given[0], hooks.edit_keys(index, given[1])}, 2);
  }
  const auto qk = split(qk_bthd), rotated = split(rotate(qk_bthd, model.rotary));
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

Decoder make_decoder(const DecoderConfig& config, std::uint64_t seed, at::Device device) {
  validate(config);
  const at::NoGradGuard no_gradients;
  Decoder model{config, {}, {}, {}, {}};
  shape_parameters(model);
  at::Generator generator = at::detail::createCPUGenerator(seed);
  for_each_parameter(model, [&](const std::string& name, at::Tensor& value) {
    if (value.dim() == 2)
      value.normal_(0, config.init_std, generator);
    else
      value.fill_(1);
    value = value.to(device).set_requires_grad(!is_frozen(config, name));
  });
  model.rotary = rotary_table(config.positions, config.d_k, config.rope_base).to(device);
  return model;
}

Decoder converted(const Decoder& model, at::ScalarType type) {
  Decoder copy = model;
  for_each_parameter(copy, [&](const std::string&, at::Tensor& value) {
    value = value.detach().to(type, /*non_blocking=*/false, /*copy=*/true).set_requires_grad(value.requires_grad());
  });
  const DecoderConfig& c = model.config;
  copy.rotary = rotary_table(c.positions, c.d_k, c.rope_base, type).to(model.rotary.device());
  return copy;
}

Decoder with_positions(const Decoder& model, std::int64_t positions) {
  Decoder copy = model;
  copy.config.positions = positions;
  copy.rotary = rotary_table(positions, model.config.d_k, model.config.rope_base).to(model.rotary.device());
  return copy;
}

at::Tensor final_hidden(const Decoder& model, const at::Tensor& tokens_bt, at::ScalarType type, const Hooks& hooks) {
  const DecoderConfig& c = model.config;
  HEADSCOPE_CHECK(tokens_bt.size(1) <= c.positions, "{} tokens, {} positions", tokens_bt.size(1), c.positions);
  at::Tensor x_btm = at::embedding(model.embedding, tokens_bt).to(type) * std::sqrt(static_cast<double>(c.d_model));
  for (std::int64_t index = 0; index < c.layers; ++index) {
    x_btm = x_btm + attention(model, index, x_btm, hooks);
    x_btm = x_btm + feed_forward(model, model.layers[static_cast<std::size_t>(index)], x_btm);
  }
  return rms_norm(x_btm, model.final_norm, c.norm_eps);
}

at::Tensor logits(const Decoder& model, const at::Tensor& tokens_bt, at::ScalarType type) {
  return at::linear(final_hidden(model, tokens_bt, type), model.embedding.to(type));
}

at::Tensor next_token_loss(const Decoder& model, const at::Tensor& tokens_bt, const at::Tensor& targets_bt,
                           at::ScalarType type, const Hooks& hooks) {
  const at::Tensor hidden_nm = final_hidden(model, tokens_bt, type, hooks).flatten(0, 1);
  return linear_cross_entropy(hidden_nm, model.embedding, targets_bt.flatten());
}

}  // namespace headscope
