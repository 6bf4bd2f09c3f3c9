// The choices that make a decoder.
#pragma once

#include <cstdint>

#include "core/config.h"

namespace headscope {

// The activation between the two matrices of the feed-forward layer.
enum class Activation { squared_relu };
template <>
struct EnumNames<Activation> {
  static constexpr std::array<std::string_view, 1> names = {"squared_relu"};
};

struct DecoderConfig {
  std::int64_t vocabulary = 258;  // the byte tokenizer's: 256 bytes, end of text, document start
  std::int64_t d_model = 128;
  std::int64_t layers = 4;
  std::int64_t heads = 4;     // of queries
  std::int64_t kv_heads = 2;  // of keys and values: a divisor of heads
  std::int64_t d_k = 32;      // of one head; even, for RoPE's pairs
  std::int64_t d_ff = 512;
  // RMSNorm over d_k of every query and key, before RoPE (seed 004). One gain vector for the queries and one for the
  // keys of a layer, shared by its heads. Whether the gains are trained is a choice of training (train.qk_gain).
  bool qk_norm = true;
  double norm_eps = 1.1920928955078125e-07;  // float32's machine epsilon, as torch's RMSNorm has it
  double rope_base = 10000;
  Activation activation = Activation::squared_relu;
  double init_std = 0.02;  // all matrices; gains start at 1

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    // Far beyond any model. The weights of all layers are then fewer than 2^60: counts of them, in bytes too, are
    // exact.
    visit("model.vocabulary", self.vocabulary, "Size of the vocabulary", SizeRange{1, 1 << 24, "tokens"});
    visit("model.d_model", self.d_model, "Width of the residual stream", SizeRange{1, 1 << 20, "dimensions"});
    visit("model.layers", self.layers, "Layers", SizeRange{1, 4096, "layers"});
    visit("model.heads", self.heads, "Query heads of a layer", SizeRange{1, 1 << 16, "heads"});
    visit("model.kv_heads", self.kv_heads, "Key and value heads of a layer: a divisor of model.heads",
          SizeRange{1, 1 << 16, "heads"});
    visit("model.d_k", self.d_k, "Width of a head, even", SizeRange{2, 1 << 16, "dimensions"});
    visit("model.d_ff", self.d_ff, "Width of the feed-forward layer", SizeRange{1, 1 << 24, "dimensions"});
    visit("model.qk_norm", self.qk_norm, "RMSNorm of queries and keys");
    visit("model.norm_eps", self.norm_eps, "Added to the mean square in RMSNorm", positive_up_to(largest_float));
    visit("model.rope_base", self.rope_base, "Base of the rotary angles", NumberRange{1, largest_float, false, true});
    visit("model.activation", self.activation, "Activation of the feed-forward layer");
    visit("model.init_std", self.init_std, "Standard deviation of the initial matrices", positive_up_to(largest_float));
  }
};

// Throws Error(Fault::input) naming the key on values that make no model.
void validate(const DecoderConfig& config);

struct ParameterCounts {
  std::int64_t total = 0;
  std::int64_t embedding = 0;  // tied with the head, counted once
  std::int64_t matrices = 0;   // of the layers: what Muon trains
};
// Of a configuration that validate() accepts.
ParameterCounts count_parameters(const DecoderConfig& config);

}  // namespace headscope
