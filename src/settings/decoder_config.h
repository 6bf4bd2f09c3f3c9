// The choices that make a decoder. The defaults are the source study's model; a published architecture is other values
// of the same fields (model/architectures.h).
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/config.h"

namespace headscope {

// rms: x / sqrt(mean(x²) + eps) · gain. layer: the same of x - mean(x), plus a bias.
enum class NormKind { rms, layer };
// Of a sub-layer's input, of its output before it is added to the residual stream, or of both.
enum class NormPlace { before, after, both };

struct Norm {
  NormKind kind = NormKind::rms;
  NormPlace place = NormPlace::before;
  double eps = 1.1920928955078125e-07;  // float32's machine epsilon, as torch's RMSNorm has it
  double offset = 0;                    // added to the stored gains, those of QK-Norm too: gemma stores gain - 1
};

// What QK-Norm takes the mean over: the d_k components of a head, with one gain vector for all heads, or the components
// of all heads together, with a gain for each.
enum class QkNormOver { one_head, all_heads };

// The gains of QK-Norm over one head: one for each of its d_k dimensions, or one factor for all of them.
enum class QkGainShape { vector, scalar };
template <>
struct EnumNames<QkGainShape> {
  static constexpr std::array<std::string_view, 2> names = {"vector", "scalar"};
};

// The factor that gives q·k without QK-Norm the spread that QK-Norm gives it, with the matrices of the start. Behind a
// norm, a component of a query or key has the variance init_std²·d_model; with QK-Norm it is 1. So q·k spreads
// init_std²·d_model times as much as with QK-Norm.
struct Matched {
  static constexpr std::string_view text = "matched";
};

// Which dimensions of a head turn together, of n that turn: (2i, 2i + 1), or (i, i + n/2).
enum class RopePairing { neighbours, halves };

// How the frequencies of RoPE change for sequences longer than those of pre-training (model/rope.h has the formulas).
enum class RopeScalingKind { none, linear, dynamic, llama3, yarn, longrope };
struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::none;
  double factor = 1;
  double original_length = 0;            // tokens of a sequence in pre-training
  double low_frequency = 1;              // llama3: periods in that length, below which a frequency is divided by factor
  double high_frequency = 4;             // llama3: above which it is kept
  double beta_fast = 32, beta_slow = 1;  // yarn: the same two limits
  bool whole_dimensions = true;          // yarn: the limits are rounded to whole dimensions
  double magnitude = 1;                  // yarn, longrope: cos and sin are multiplied by it, so norms change
  std::vector<double> short_factors = {};  // longrope: divisor of each frequency up to original_length
  std::vector<double> long_factors = {};   // longrope: and for longer sequences
};

struct Rope {
  std::int64_t dims = 0;  // the first dimensions of a head, which turn; 0: all
  double base = 10000;
  RopePairing pairing = RopePairing::neighbours;
  RopeScaling scaling = {};
  // Frequencies and angles are rounded to float32, as public libraries compute them: at position 8192 the exact angles
  // differ by up to 5e-4. Otherwise float64.
  bool float32_angles = false;
};

// The function between the matrices of the feed-forward layer. gelu_tanh: its approximation by tanh.
enum class Activation { squared_relu, silu, gelu, gelu_tanh, relu };
template <>
struct EnumNames<Activation> {
  static constexpr std::array<std::string_view, 5> names = {"squared_relu", "silu", "gelu", "gelu_tanh", "relu"};
};

struct Biases {
  bool qkv = false, output = false, feed_forward = false;
};

struct DecoderConfig {
  std::int64_t vocabulary = 258;  // the byte tokenizer's: 256 bytes, end of text, document start
  std::int64_t d_model = 128;
  std::int64_t layers = 4;
  std::int64_t heads = 4;     // of queries
  std::int64_t kv_heads = 2;  // of keys and values: a divisor of heads
  std::int64_t d_k = 32;      // of one head; even, for RoPE's pairs
  std::int64_t d_ff = 512;
  // RMSNorm of the queries and keys of a layer, before RoPE (seed 004). Whether the gains are trained is a choice of
  // training (train.qk_gain).
  bool qk_norm = true;
  QkNormOver qk_norm_over = QkNormOver::one_head;
  QkGainShape qk_gain = QkGainShape::vector;  // as in the source study
  NumberOr<Matched> qk_scale{1};              // fixed factor on q·k, beside score_factor's other one
  Norm norm = {};
  Rope rope = {};
  std::optional<Rope> sliding_rope = {};   // of the layers with a window, where it is another one
  std::vector<bool> layer_has_rope = {};   // empty: all have it
  std::vector<std::int64_t> windows = {};  // of each layer: a query sees the last w keys, its own included; 0: all
  Activation activation = Activation::squared_relu;
  bool gated = false;  // feed-forward: activation(gate · x) · (up · x) instead of activation(up · x)
  Biases bias = {};
  std::optional<double> embedding_scale = {};  // factor on embeddings; nothing: sqrt(d_model)
  std::optional<double> attention_scale = {};  // factor on q·k; nothing: 1/sqrt(d_k)
  double score_cap = 0;                        // soft-cap: s becomes cap·tanh(s/cap); 0: none
  double logit_cap = 0;
  bool parallel_residual = false;  // attention and feed-forward both read the layer's input
  bool tied_head = true;           // the head is the embedding
  std::int64_t longest = 0;        // tokens of a sequence that the model is meant for; 0: not known
  double init_std = 0.02;          // all matrices; gains start at 1

  [[nodiscard]] std::int64_t window(std::int64_t layer) const {
    return windows.empty() ? 0 : windows[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] bool has_rope(std::int64_t layer) const {
    return layer_has_rope.empty() || layer_has_rope[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] bool norms_before() const { return norm.place != NormPlace::after; }
  [[nodiscard]] bool norms_after() const { return norm.place != NormPlace::before; }
  // Rows of the matrix of queries, keys and values: of the queries, and of the keys, which the values have, too.
  [[nodiscard]] std::int64_t query_rows() const { return heads * d_k; }
  [[nodiscard]] std::int64_t key_rows() const { return kv_heads * d_k; }
  // The factors on embeddings and on q·k.
  [[nodiscard]] double embedding_factor() const {
    return embedding_scale.value_or(std::sqrt(static_cast<double>(d_model)));
  }
  [[nodiscard]] double score_factor() const {
    return attention_scale.value_or(1 / std::sqrt(static_cast<double>(d_k))) * qk_factor();
  }
  // What qk_scale says or means.
  [[nodiscard]] double qk_factor() const {
    return qk_scale.number.value_or(1 / (init_std * init_std * static_cast<double>(d_model)));
  }
  // Elements of the gain of QK-Norm that is stored for queries or keys of so many rows.
  [[nodiscard]] std::int64_t gain_size(std::int64_t rows) const {
    return qk_norm_over == QkNormOver::all_heads ? rows : qk_gain == QkGainShape::scalar ? 1 : d_k;
  }

  // What a training may choose.
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
    visit(
        "model.qk_gain", self.qk_gain,
        "Gains of QK-Norm in a layer: vector, one for each dimension of a head; scalar, one factor for queries and one "
        "for keys");
    visit(
        "model.qk_scale", self.qk_scale,
        "Fixed factor on q·k, beside 1/sqrt(d_k); matched: 1/(init_std²·d_model), which spreads scores without QK-Norm "
        "at the start as QK-Norm does",
        NumberRange{1e-6, 1e6});
    visit("model.norm_eps", self.norm.eps, "Added to the mean square in RMSNorm", positive_up_to(largest_float));
    visit("model.rope_base", self.rope.base, "Base of the rotary angles", NumberRange{1, largest_float, false, true});
    visit("model.activation", self.activation, "Activation of the feed-forward layer");
    visit("model.init_std", self.init_std, "Standard deviation of the initial matrices", positive_up_to(largest_float));
  }
};

// Throws Error(Fault::input) naming the key on values that make no model.
void validate(const DecoderConfig& config);

struct ParameterCounts {
  std::int64_t total = 0;
  std::int64_t embedding = 0;  // with the head; a tied one is counted once
  std::int64_t matrices = 0;   // of the layers: what Muon trains
};
// Of a configuration that validate() accepts.
ParameterCounts count_parameters(const DecoderConfig& config);

// Whether it is the source study's decoder, of any size, with or without QK-Norm: those that are trained without
// autograd on a GPU (model/training_pass.h).
bool is_of_the_source_study(const DecoderConfig& config);

// Floating-point operations of training on one token: 6 for each parameter in a matrix product (forward, gradient of
// the input, gradient of the weight), and of causal attention 3.5 times its forward pass of 4·(T/2)·heads·d_k a layer
// (the backward pass has five products for the forward pass's two: it computes the scores again).
// benchmarks/training/peer.py counts the same.
double training_flops_per_token(const DecoderConfig& config, std::int64_t seq_len);

}  // namespace headscope
