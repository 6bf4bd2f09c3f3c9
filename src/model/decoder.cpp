#include "model/decoder.h"

#include <ATen/CPUGeneratorImpl.h>

#include "model/rope.h"
#include "ops/attention.h"
#include "ops/linear.h"
#include "ops/linear_cross_entropy.h"
#include "ops/rms_norm.h"
#include "ops/silu_product.h"
#include "ops/squared_relu.h"

namespace headscope {
namespace {

// The angles for sequences of this length; made when a longer one than before comes, or one with other frequencies.
const at::Tensor& angles_for(const Decoder& model, std::int64_t layer, std::int64_t length) {
  const DecoderConfig& c = model.config;
  const bool sliding = c.sliding_rope && c.window(layer) != 0;
  const Rope& rope = sliding ? *c.sliding_rope : c.rope;
  RotaryAngles& angles = sliding ? model.rotary->sliding : model.rotary->all;
  const std::int64_t set = frequency_set(c, rope, length);
  if (!angles.table.defined() || angles.table.size(0) < length || angles.set != set) {
    const at::ScalarType type = model.embedding.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    angles = {rotary_table(length, rope_frequencies(c, rope, length), rope.scaling.magnitude, type)
                  .to(model.embedding.device()),
              set};
  }
  return angles.table;
}

at::Tensor normed(const Decoder& model, const NormWeights& weights, const at::Tensor& x) {
  const Norm& norm = model.config.norm;
  const at::Tensor gain = effective_gain(model, weights.gain);
  if (norm.kind == NormKind::rms) return rms_norm(x, gain, norm.eps);
  return at::layer_norm(x, x.size(-1), gain.to(x.scalar_type()), weights.bias.to(x.scalar_type()), norm.eps);
}

at::Tensor applied(const Linear& matrix, const at::Tensor& x) {
  return apply_linear(x, matrix.weight, matrix.bias);
}

// QK-Norm of the queries and keys of a layer, [b, t, heads + kv_heads, d_k].
at::Tensor qk_normed(const Decoder& model, const DecoderLayer& layer, const at::Tensor& qk_bthd) {
  const DecoderConfig& c = model.config;
  const at::Tensor q_gain = effective_qk_gain(model, layer.q_gain), k_gain = effective_qk_gain(model, layer.k_gain);
  if (c.qk_norm_over == QkNormOver::one_head) {
    const at::Tensor gain_hd = at::cat({q_gain.expand({c.heads, c.d_k}), k_gain.expand({c.kv_heads, c.d_k})});
    return rms_norm(qk_bthd, gain_hd, c.norm.eps);
  }
  const auto parts = qk_bthd.flatten(-2).split_with_sizes({c.query_rows(), c.key_rows()}, -1);
  return at::cat({rms_norm(parts[0], q_gain, c.norm.eps), rms_norm(parts[1], k_gain, c.norm.eps)}, -1)
      .unflatten(-1, {-1, c.d_k});
}

at::Tensor activated(Activation activation, const at::Tensor& x) {
  switch (activation) {
    case Activation::silu:
      return at::silu(x);
    case Activation::gelu:
      return at::gelu(x);
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case Activation::relu:
      return at::relu(x);
    case Activation::squared_relu:
      break;
  }
  return squared_relu(x);
}

// What the heads of the layer get, of the residual stream. Hooks see it.
HeadVectors head_vectors(const Decoder& model, std::int64_t index, const at::Tensor& x_btm, const Hooks& hooks) {
  const DecoderConfig& c = model.config;
  const DecoderLayer& layer = model.layers[static_cast<std::size_t>(index)];
  const at::Tensor h_btm = c.norms_before() ? normed(model, layer.attention_norm, x_btm) : x_btm;
  const at::Tensor qkv_bthd = applied(layer.qkv, h_btm).unflatten(-1, {-1, c.d_k});
  const auto parts = qkv_bthd.split_with_sizes({c.heads + c.kv_heads, c.kv_heads}, 2);
  at::Tensor qk_bthd = parts[0];
  const at::Tensor& v_bthd = parts[1];
  if (c.qk_norm) qk_bthd = qk_normed(model, layer, qk_bthd);
  const auto split = [&](const at::Tensor& x) { return x.split_with_sizes({c.heads, c.kv_heads}, 2); };
  if (hooks.edit_keys) {
    const auto given = split(qk_bthd);
    qk_bthd = at::cat({given[0], hooks.edit_keys(index, given[1])}, 2);
  }
  const bool halves = c.rope.pairing == RopePairing::halves;
  const auto qk = split(qk_bthd);
  const auto rotated = c.has_rope(index) ? split(rotate(qk_bthd, angles_for(model, index, x_btm.size(1)), halves)) : qk;
  const HeadVectors vectors{qk[0],      qk[1],      v_bthd,
                            rotated[0], rotated[1], {c.score_factor(), c.window(index), c.score_cap}};
  if (hooks.observe) hooks.observe(index, vectors);
  return vectors;
}

at::Tensor attention(const Decoder& model, std::int64_t index, const at::Tensor& x_btm, const Hooks& hooks) {
  const DecoderConfig& c = model.config;
  const DecoderLayer& layer = model.layers[static_cast<std::size_t>(index)];
  const HeadVectors heads = head_vectors(model, index, x_btm, hooks);
  const at::Tensor mixed_bthd =
      causal_attention(heads.q_rotated_bthd, heads.k_rotated_bthd, heads.v_bthd, heads.scores);
  const at::Tensor out_btm = applied(layer.output, mixed_bthd.flatten(-2));
  return c.norms_after() ? normed(model, layer.attention_out_norm, out_btm) : out_btm;
}

at::Tensor feed_forward(const Decoder& model, std::int64_t index, const at::Tensor& x_btm) {
  const DecoderConfig& c = model.config;
  const DecoderLayer& layer = model.layers[static_cast<std::size_t>(index)];
  const at::Tensor h_btm = c.norms_before() ? normed(model, layer.feed_forward_norm, x_btm) : x_btm;
  const at::Tensor up = applied(layer.up, h_btm);
  const auto gated = [&] {
    const at::Tensor gate = applied(layer.gate, h_btm);
    return c.activation == Activation::silu ? silu_product(gate, up) : activated(c.activation, gate) * up;
  };
  const at::Tensor inner = c.gated ? gated() : activated(c.activation, up);
  const at::Tensor out_btm = applied(layer.down, inner);
  return c.norms_after() ? normed(model, layer.feed_forward_out_norm, out_btm) : out_btm;
}

at::Tensor embedded(const Decoder& model, const at::Tensor& tokens_bt, at::ScalarType type) {
  return at::embedding(model.embedding, tokens_bt).to(type) * model.config.embedding_factor();
}

// The residual stream behind a layer.
at::Tensor after_layer(const Decoder& model, std::int64_t index, const at::Tensor& x_btm, const Hooks& hooks) {
  const at::Tensor attended = x_btm + attention(model, index, x_btm, hooks);
  return attended + feed_forward(model, index, model.config.parallel_residual ? x_btm : attended);
}

}  // namespace

std::vector<LayerMatrix> layer_matrices(const Decoder& model) {
  std::vector<LayerMatrix> matrices;
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    for (LayerMatrix& matrix : layer_matrices(model, i)) matrices.push_back(std::move(matrix));
  return matrices;
}

std::vector<LayerMatrix> layer_matrices(const Decoder& model, std::size_t index) {
  const DecoderLayer& layer = model.layers[index];
  const std::string prefix = "layers." + std::to_string(index) + ".";
  std::vector<LayerMatrix> matrices;
  // Queries, keys, values and output are one matrix, as in the source study; an output of another width stands alone.
  if (layer.output.weight.size(1) == layer.qkv.weight.size(1)) {
    matrices.push_back({prefix + "attention", {layer.qkv.weight, layer.output.weight}});
  } else {
    matrices.push_back({prefix + "attention.qkv", {layer.qkv.weight}});
    matrices.push_back({prefix + "attention.output", {layer.output.weight}});
  }
  if (model.config.gated) matrices.push_back({prefix + "feed_forward.gate", {layer.gate.weight}});
  matrices.push_back({prefix + "feed_forward.up", {layer.up.weight}});
  matrices.push_back({prefix + "feed_forward.down", {layer.down.weight}});
  return matrices;
}

Decoder empty_decoder(const DecoderConfig& config, at::Device device, at::ScalarType type) {
  validate(config);
  const DecoderConfig& c = config;
  const std::int64_t q = c.query_rows(), kv = c.key_rows();
  const auto empty = [&](std::initializer_list<std::int64_t> shape) {
    return at::empty(shape, at::TensorOptions(device).dtype(shape.size() > 1 ? type : at::kFloat));
  };
  const auto norm = [&](bool there = true) {
    return there ? NormWeights{empty({c.d_model}), c.norm.kind == NormKind::layer ? empty({c.d_model}) : at::Tensor()}
                 : NormWeights();
  };
  const auto matrix = [&](std::int64_t rows, std::int64_t columns, bool has_bias) {
    return Linear{empty({rows, columns}), has_bias ? empty({rows}) : at::Tensor()};
  };
  Decoder model{.config = config,
                .embedding = empty({c.vocabulary, c.d_model}),
                .layers = {},
                .final_norm = norm(),
                .own_head = c.tied_head ? at::Tensor() : empty({c.vocabulary, c.d_model})};
  for (std::int64_t i = 0; i < c.layers; ++i) {
    model.layers.push_back({.attention_norm = norm(c.norms_before()),
                            .qkv = matrix(q + 2 * kv, c.d_model, c.bias.qkv),
                            .q_gain = c.qk_norm ? empty({c.gain_size(q)}) : at::Tensor(),
                            .k_gain = c.qk_norm ? empty({c.gain_size(kv)}) : at::Tensor(),
                            .output = matrix(c.d_model, q, c.bias.output),
                            .attention_out_norm = norm(c.norms_after()),
                            .feed_forward_norm = norm(c.norms_before()),
                            .gate = c.gated ? matrix(c.d_ff, c.d_model, c.bias.feed_forward) : Linear(),
                            .up = matrix(c.d_ff, c.d_model, c.bias.feed_forward),
                            .down = matrix(c.d_model, c.d_ff, c.bias.feed_forward),
                            .feed_forward_out_norm = norm(c.norms_after())});
  }
  return model;
}

void pack_weights(Decoder& model, std::int64_t rows) {
  for (DecoderLayer& layer : model.layers)
    for (Linear* matrix : {&layer.qkv, &layer.output, &layer.gate, &layer.up, &layer.down})
      if (matrix->weight.defined()) matrix->weight = packed_weight(matrix->weight, rows);
}

Decoder make_decoder(const DecoderConfig& config, std::uint64_t seed, at::Device device) {
  const at::NoGradGuard no_gradients;
  Decoder model = empty_decoder(config);
  at::Generator generator = at::detail::createCPUGenerator(seed);
  for_each_parameter(model, [&](const std::string&, ParameterKind kind, at::Tensor& value) {
    if (kind == ParameterKind::embedding || kind == ParameterKind::matrix)
      value.normal_(0, config.init_std, generator);
    else
      value.fill_(kind == ParameterKind::bias ? 0 : 1 - config.norm.offset);
    value = value.to(device).set_requires_grad(true);
  });
  return model;
}

at::Tensor final_hidden(const Decoder& model, const at::Tensor& tokens_bt, at::ScalarType type, const Hooks& hooks) {
  at::Tensor x_btm = embedded(model, tokens_bt, type);
  for (std::int64_t index = 0; index < model.config.layers; ++index) x_btm = after_layer(model, index, x_btm, hooks);
  return normed(model, model.final_norm, x_btm);
}

void observe_heads(const Decoder& model, const at::Tensor& tokens_bt, at::ScalarType type, std::int64_t last_layer,
                   const Observe& observe) {
  const Hooks hooks{.observe = observe};
  at::Tensor x_btm = embedded(model, tokens_bt, type);
  for (std::int64_t index = 0; index < last_layer; ++index) x_btm = after_layer(model, index, x_btm, hooks);
  head_vectors(model, last_layer, x_btm, hooks);
}

at::Tensor next_token_logits(const Decoder& model, const at::Tensor& hidden_btm) {
  return capped_logits(hidden_btm, model.head().to(hidden_btm.scalar_type()), model.config.logit_cap);
}

at::Tensor next_token_loss(const Decoder& model, const at::Tensor& tokens_bt, const at::Tensor& targets_bt,
                           at::ScalarType type, const Hooks& hooks) {
  const at::Tensor hidden_nm = final_hidden(model, tokens_bt, type, hooks).flatten(0, 1);
  return linear_cross_entropy(hidden_nm, model.head(), targets_bt.flatten(), logits_slice_bytes,
                              model.config.logit_cap);
}

}  // namespace headscope
