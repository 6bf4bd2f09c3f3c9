// The decoder: its weights, and the forward pass.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ops/attention.h"
#include "settings/decoder_config.h"

namespace headscope {

// Tensors with their names: parameters, or the state of an optimizer.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// A matrix of a layer; its parts are parameters stacked by rows.
struct LayerMatrix {
  std::string name;
  std::vector<at::Tensor> parts;
};

// y = x·weightᵀ + bias; without a bias that is undefined.
struct Linear {
  at::Tensor weight, bias;
};

// Of a norm; LayerNorm alone has a bias. Undefined where the model has no norm in this place.
struct NormWeights {
  at::Tensor gain, bias;
};

struct DecoderLayer {
  NormWeights attention_norm;  // of the input, [d_model]
  Linear qkv;                  // [(heads + 2 kv_heads)·d_k, d_model]: rows of the queries, keys, values
  // [d_k], or [1], or of all heads, [heads·d_k] and [kv_heads·d_k]; undefined without QK-Norm
  at::Tensor q_gain, k_gain;
  Linear output;                   // [d_model, heads·d_k]
  NormWeights attention_out_norm;  // of the output
  NormWeights feed_forward_norm;
  Linear gate;      // [d_ff, d_model]; undefined where there is none
  Linear up, down;  // [d_ff, d_model], [d_model, d_ff]
  NormWeights feed_forward_out_norm;
};

// The angles of a Rope (ops/attention.h) for the longest sequence so far, and the set of frequencies that they are of.
struct RotaryAngles {
  at::Tensor table;
  std::int64_t set = 0;
};
struct Rotary {
  RotaryAngles all, sliding;  // of config.rope, and of config.sliding_rope
};

struct Decoder {
  DecoderConfig config;
  at::Tensor embedding;  // [vocabulary, d_model]; a tied head, too
  std::vector<DecoderLayer> layers;
  NormWeights final_norm;
  at::Tensor own_head = {};  // [vocabulary, d_model]; undefined where the head is tied
  // Not a parameter.
  std::shared_ptr<Rotary> rotary = std::make_shared<Rotary>();

  [[nodiscard]] const at::Tensor& head() const { return config.tied_head ? embedding : own_head; }
};

// What a parameter is to an optimizer.
enum class ParameterKind { embedding, matrix, gain, qk_gain, bias };

// Visits every parameter that the model has, in a fixed order: visit(name, kind, tensor).
template <class Model, class Visit>
void for_each_parameter(Model& model, Visit&& visit) {
  using enum ParameterKind;
  const DecoderConfig& config = model.config;
  const auto visit_linear = [&](const std::string& name, auto& linear, bool has_bias) {
    visit(name + ".weight", matrix, linear.weight);
    if (has_bias) visit(name + ".bias", bias, linear.bias);
  };
  const auto visit_norm = [&](const std::string& name, auto& norm) {
    visit(name + ".gain", gain, norm.gain);
    if (config.norm.kind == NormKind::layer) visit(name + ".bias", bias, norm.bias);
  };
  visit("embedding.weight", embedding, model.embedding);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    auto& layer = model.layers[i];
    const std::string prefix = "layers." + std::to_string(i) + ".";
    if (config.norms_before()) visit_norm(prefix + "attention_norm", layer.attention_norm);
    visit_linear(prefix + "attention.qkv", layer.qkv, config.bias.qkv);
    if (config.qk_norm) {
      visit(prefix + "attention.q_norm.gain", qk_gain, layer.q_gain);
      visit(prefix + "attention.k_norm.gain", qk_gain, layer.k_gain);
    }
    visit_linear(prefix + "attention.output", layer.output, config.bias.output);
    if (config.norms_after()) visit_norm(prefix + "attention_out_norm", layer.attention_out_norm);
    if (config.norms_before()) visit_norm(prefix + "feed_forward_norm", layer.feed_forward_norm);
    if (config.gated) visit_linear(prefix + "feed_forward.gate", layer.gate, config.bias.feed_forward);
    visit_linear(prefix + "feed_forward.up", layer.up, config.bias.feed_forward);
    visit_linear(prefix + "feed_forward.down", layer.down, config.bias.feed_forward);
    if (config.norms_after()) visit_norm(prefix + "feed_forward_out_norm", layer.feed_forward_out_norm);
  }
  visit_norm("final_norm", model.final_norm);
  if (!config.tied_head) visit("head.weight", embedding, model.own_head);
}

// The matrices of the layers as Muon takes them; of all layers, or of one.
std::vector<LayerMatrix> layer_matrices(const Decoder& model);
std::vector<LayerMatrix> layer_matrices(const Decoder& model, std::size_t layer);

// The gains that a norm multiplies by, of those that are stored.
inline at::Tensor effective_gain(const Decoder& model, const at::Tensor& stored) {
  return model.config.norm.offset == 0 ? stored : stored + model.config.norm.offset;
}

// The gains that QK-Norm multiplies by, one for each dimension that it takes the mean over.
inline at::Tensor effective_qk_gain(const Decoder& model, const at::Tensor& stored) {
  const at::Tensor gain = effective_gain(model, stored);
  return gain.numel() == 1 ? gain.expand({model.config.d_k}) : gain;
}

// The shapes that the configuration says, without values: load_weights fills them. Matrices and embeddings are of
// `type`, norms and biases float32. On at::kMeta they take no memory.
Decoder empty_decoder(const DecoderConfig& config, at::Device device = at::kCPU, at::ScalarType type = at::kFloat);

// Puts the matrices of the layers into the order that this machine multiplies fastest with (ops/linear.h), for passes
// of about `rows` tokens without gradients, in the type of the matrices. They cannot be read afterwards.
void pack_weights(Decoder& model, std::int64_t rows);

// Fresh weights from the seed, the same on every device, with and without QK-Norm. All parameters require gradients.
Decoder make_decoder(const DecoderConfig& config, std::uint64_t seed, at::Device device = at::kCPU);

// What the heads of a layer work with. Queries and keys are after bias and QK-Norm, before and after RoPE; the
// scores are those of the latter.
struct HeadVectors {
  at::Tensor q_bthd, k_bthd, v_bthd;
  at::Tensor q_rotated_bthd, k_rotated_bthd;
  Scores scores = {};
  // float32 [b, heads, t]: log Σ exp(score) of each row over the keys that it sees, where attention has computed it (on
  // a GPU); undefined elsewhere.
  at::Tensor log_sum_bht = {};
};

// Called for every layer on the way. Observe must not change the vectors. EditKeys gets the keys before RoPE and
// returns the keys that the layer is to use instead.
using Observe = std::function<void(std::int64_t layer, const HeadVectors& vectors)>;
using EditKeys = std::function<at::Tensor(std::int64_t layer, const at::Tensor& k_bthd)>;
struct Hooks {
  Observe observe = {};
  EditKeys edit_keys = {};
};

// The residual stream after the last norm, [b, t, d_model], computed in `type`. tokens_bt: int64.
at::Tensor final_hidden(const Decoder& model, const at::Tensor& tokens_bt, at::ScalarType type,
                        const Hooks& hooks = {});

// Calls `observe` for the layers 0 … last_layer and computes nothing behind the queries and keys of the last one.
void observe_heads(const Decoder& model, const at::Tensor& tokens_bt, at::ScalarType type, std::int64_t last_layer,
                   const Observe& observe);

// The scores of the next token, [..., vocabulary], of what final_hidden returned.
at::Tensor next_token_logits(const Decoder& model, const at::Tensor& hidden_btm);

// Mean cross-entropy of targets_bt, nats.
at::Tensor next_token_loss(const Decoder& model, const at::Tensor& tokens_bt, const at::Tensor& targets_bt,
                           at::ScalarType type, const Hooks& hooks = {});

}  // namespace headscope
