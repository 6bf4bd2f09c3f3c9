// The decoder: its weights, and the forward pass.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <vector>

#include "model/decoder_config.h"

namespace headscope {

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
  at::Tensor rotary;  // ops/rotary.h; not a parameter
};

// Visits every parameter that the model has, in a fixed order: visit(name, tensor).
template <class Model, class Visit>
void for_each_parameter(Model& model, Visit&& visit) {
  visit("embedding.weight", model.embedding);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    auto& layer = model.layers[i];
    const std::string prefix = "layers." + std::to_string(i) + ".";
    visit(prefix + "attention_norm.gain", layer.attention_norm);
    visit(prefix + "attention.qkv.weight", layer.qkv);
    if (model.config.qk_norm != QkNorm::none) {
      visit(prefix + "attention.q_norm.gain", layer.q_gain);
      visit(prefix + "attention.k_norm.gain", layer.k_gain);
    }
    visit(prefix + "attention.output.weight", layer.output);
    visit(prefix + "feed_forward_norm.gain", layer.feed_forward_norm);
    visit(prefix + "feed_forward.up.weight", layer.up);
    visit(prefix + "feed_forward.down.weight", layer.down);
  }
  visit("final_norm.gain", model.final_norm);
}

// Fresh weights from the seed, the same on every device and for every kind of QK-Norm. float32; parameters require
// gradients unless they are frozen.
Decoder make_decoder(const DecoderConfig& config, std::uint64_t seed, at::Device device = at::kCPU);

// The same model in another type, for tests and exact measurements: its parameters are new leaves.
Decoder converted(const Decoder& model, at::ScalarType type);

// The same weights with rotary angles for longer sequences.
Decoder with_positions(const Decoder& model, std::int64_t positions);

// What the heads of a layer work with. Queries and keys are after QK-Norm, before and after RoPE; the score of a pair
// is scale · q_rotated · k_rotated.
struct HeadVectors {
  at::Tensor q_bthd, k_bthd, v_bthd;
  at::Tensor q_rotated_bthd, k_rotated_bthd;
  double scale = 1;
};

// Called for every layer on the way.
using Observe = std::function<void(std::int64_t layer, const HeadVectors& vectors)>;       // must not change them
using EditKeys = std::function<at::Tensor(std::int64_t layer, const at::Tensor& k_bthd)>;  // others, before RoPE
struct Hooks {
  Observe observe = {};
  EditKeys edit_keys = {};
};

// The residual stream after the last norm, [b, t, d_model], computed in `type`. tokens_bt: int64.
at::Tensor final_hidden(const Decoder& model, const at::Tensor& tokens_bt, at::ScalarType type,
                        const Hooks& hooks = {});

// [b, t, vocabulary]
at::Tensor logits(const Decoder& model, const at::Tensor& tokens_bt, at::ScalarType type);

// Mean cross-entropy of targets_bt, nats.
at::Tensor next_token_loss(const Decoder& model, const at::Tensor& tokens_bt, const at::Tensor& targets_bt,
                           at::ScalarType type, const Hooks& hooks = {});

}  // namespace headscope
