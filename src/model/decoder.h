// The decoder: its weights, and the forward pass.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "settings/decoder_config.h"

namespace headscope {

// Tensors with their names: parameters, or the state of an optimizer.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// A matrix of a layer; its parts are parameters stacked by rows.
struct LayerMatrix {
  std::string name;
  std::vector<at::Tensor> parts;
};

struct DecoderLayer {
  at::Tensor attention_norm;  // gain [d_model]
  at::Tensor qkv;             // [(heads + 2 kv_heads)·d_k, d_model]: rows of the queries, keys, values
  at::Tensor q_gain, k_gain;  // [d_k]; undefined without QK-Norm
  at::Tensor output;          // [d_model, heads·d_k]
  at::Tensor feed_forward_norm;
  at::Tensor up, down;  // [d_ff, d_model], [d_model, d_ff]
};

struct Decoder {
  DecoderConfig config;
  at::Tensor embedding;  // [vocabulary, d_model], also the head
  std::vector<DecoderLayer> layers;
  at::Tensor final_norm;
  // Not a parameter: the angles of RoPE (ops/attention.h) for the longest sequence so far.
  std::shared_ptr<at::Tensor> rotary = std::make_shared<at::Tensor>();
};

// What a parameter is to an optimizer.
enum class ParameterKind { embedding, matrix, gain, qk_gain };

// Visits every parameter that the model has, in a fixed order: visit(name, kind, tensor).
template <class Model, class Visit>
void for_each_parameter(Model& model, Visit&& visit) {
  using enum ParameterKind;
  visit("embedding.weight", embedding, model.embedding);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    auto& layer = model.layers[i];
    const std::string prefix = "layers." + std::to_string(i) + ".";
    visit(prefix + "attention_norm.gain", gain, layer.attention_norm);
    visit(prefix + "attention.qkv.weight", matrix, layer.qkv);
    if (model.config.qk_norm) {
      visit(prefix + "attention.q_norm.gain", qk_gain, layer.q_gain);
      visit(prefix + "attention.k_norm.gain", qk_gain, layer.k_gain);
    }
    visit(prefix + "attention.output.weight", matrix, layer.output);
    visit(prefix + "feed_forward_norm.gain", gain, layer.feed_forward_norm);
    visit(prefix + "feed_forward.up.weight", matrix, layer.up);
    visit(prefix + "feed_forward.down.weight", matrix, layer.down);
  }
  visit("final_norm.gain", gain, model.final_norm);
}

// The matrices of the layers as Muon takes them.
std::vector<LayerMatrix> layer_matrices(const Decoder& model);

// The shapes that the configuration says, in float32, without values: load_weights fills them.
Decoder empty_decoder(const DecoderConfig& config, at::Device device = at::kCPU);

// Fresh weights from the seed, the same on every device, with and without QK-Norm. All parameters require gradients.
Decoder make_decoder(const DecoderConfig& config, std::uint64_t seed, at::Device device = at::kCPU);

// What the heads of a layer work with. Queries and keys are after QK-Norm, before and after RoPE; the score of a pair
// is scale · q_rotated · k_rotated.
struct HeadVectors {
  at::Tensor q_bthd, k_bthd, v_bthd;
  at::Tensor q_rotated_bthd, k_rotated_bthd;
  double scale = 1;
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

// Mean cross-entropy of targets_bt, nats.
at::Tensor next_token_loss(const Decoder& model, const at::Tensor& tokens_bt, const at::Tensor& targets_bt,
                           at::ScalarType type, const Hooks& hooks = {});

}  // namespace headscope
