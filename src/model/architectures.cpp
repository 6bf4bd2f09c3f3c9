#include "model/architectures.h"

#include <algorithm>
#include <cmath>

#include "core/config.h"

namespace headscope {
namespace {

const std::vector<std::string_view> usual_prefixes = {"model.", ""};
const std::vector<std::string_view> usual_heads = {"lm_head"};

// The names of llama, which most others share; their own rows come before.
std::vector<StoredTensor> usual_tensors(std::vector<StoredTensor> own = {}) {
  const StoredTensor usual[] = {
      {"embedding", {"embed_tokens"}},
      {"attention_norm", {"input_layernorm"}},
      {"attention.qkv", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
      {"attention.q_norm", {"self_attn.q_norm"}},
      {"attention.k_norm", {"self_attn.k_norm"}},
      {"attention.output", {"self_attn.o_proj"}},
      {"feed_forward_norm", {"post_attention_layernorm"}},
      {"feed_forward.gate", {"mlp.gate_proj"}},
      {"feed_forward.up", {"mlp.up_proj"}},
      {"feed_forward.down", {"mlp.down_proj"}},
      {"final_norm", {"norm"}},
  };
  own.insert(own.end(), std::begin(usual), std::end(usual));
  return own;
}

const std::vector<StoredTensor> llama_tensors = usual_tensors();
const std::vector<StoredTensor> olmo2_tensors = usual_tensors({
    {"attention_out_norm", {"post_attention_layernorm"}},
    {"feed_forward_out_norm", {"post_feedforward_layernorm"}},
});
const std::vector<StoredTensor> gemma_tensors = usual_tensors({
    {"attention_out_norm", {"post_attention_layernorm"}},
    {"feed_forward_norm", {"pre_feedforward_layernorm"}},
    {"feed_forward_out_norm", {"post_feedforward_layernorm"}},
});
const std::vector<StoredTensor> phi3_tensors = usual_tensors({
    {"attention.qkv", {"self_attn.qkv_proj"}},
    {"feed_forward.gate", {"mlp.gate_up_proj"}, StoredRows::first_half},
    {"feed_forward.up", {"mlp.gate_up_proj"}, StoredRows::second_half},
});
const std::vector<StoredTensor> glm4_tensors = usual_tensors({
    {"attention_out_norm", {"post_self_attn_layernorm"}},
    {"feed_forward_out_norm", {"post_mlp_layernorm"}},
    {"feed_forward.gate", {"mlp.gate_up_proj"}, StoredRows::first_half},
    {"feed_forward.up", {"mlp.gate_up_proj"}, StoredRows::second_half},
});
const std::vector<StoredTensor> neox_tensors = {
    {"embedding", {"embed_in"}},
    {"attention_norm", {"input_layernorm"}},
    {"attention.qkv", {"attention.query_key_value"}, StoredRows::by_head},
    {"attention.output", {"attention.dense"}},
    {"feed_forward_norm", {"post_attention_layernorm"}},
    {"feed_forward.up", {"mlp.dense_h_to_4h"}},
    {"feed_forward.down", {"mlp.dense_4h_to_h"}},
    {"final_norm", {"final_layer_norm"}},
};

const Architecture study_model = {.model_type = "headscope"};

const Architecture llama = {.model_type = "llama",
                            .longest = 2048,
                            .qkv_bias = Biased::as_option,
                            .output_bias = Biased::as_option,
                            .feed_forward_bias = Biased::as_option,
                            .prefixes = usual_prefixes,
                            .head_names = usual_heads,
                            .tensors = llama_tensors};

// A row with changes: the fields that differ from `row`.
template <class Change>
Architecture changed(Architecture row, Change&& change) {
  change(row);
  return row;
}

const Architecture mistral = changed(llama, [](Architecture& a) {
  a.model_type = "mistral";
  a.longest = 131072;
  a.qkv_bias = a.output_bias = a.feed_forward_bias = Biased::never;
  a.key_heads = 8;
  a.windows = Windows::every_layer;
  a.window = 4096;
});

const Architecture smollm3 = changed(llama, [](Architecture& a) {
  a.model_type = "smollm3";
  a.longest = 32768;
  a.key_heads = 4;
  a.windows = Windows::without_rope;
  a.rope_base = 2000000;
  a.skips_rope = true;
  a.tied_head = true;
});

const Architecture qwen2 = changed(llama, [](Architecture& a) {
  a.model_type = "qwen2";
  a.longest = 32768;
  a.qkv_bias = Biased::always;
  a.output_bias = a.feed_forward_bias = Biased::never;
  a.windows = Windows::from_layer_on;
  a.window = 4096;
});

const Architecture qwen3 = changed(llama, [](Architecture& a) {
  a.model_type = "qwen3";
  a.longest = 32768;
  a.feed_forward_bias = Biased::never;
  a.qk_norm = true;
  a.head_dim = 128;
  a.windows = Windows::from_layer_on;
  a.window = 4096;
});

const Architecture olmo2 = changed(llama, [](Architecture& a) {
  a.model_type = "olmo2";
  a.norm = {.place = NormPlace::after, .eps = 1e-5};
  a.feed_forward_bias = Biased::never;
  a.qk_norm = true;
  a.qk_norm_over = QkNormOver::all_heads;
  a.tensors = olmo2_tensors;
});

const Architecture gemma2 = changed(llama, [](Architecture& a) {
  a.model_type = "gemma2";
  a.longest = 8192;
  a.norm = {.place = NormPlace::both, .eps = 1e-6, .offset = 1};
  a.feed_forward_bias = Biased::never;
  a.activation_option = "hidden_activation";
  a.activation = "gelu_pytorch_tanh";
  a.key_heads = 4;
  a.head_dim = 256;
  a.windows = Windows::but_each_nth;
  a.window = 4096;
  a.full_every = 2;
  a.gemma_scales = a.has_score_cap = a.has_logit_cap = a.tied_head = true;
  a.score_cap = 50;
  a.logit_cap = 30;
  a.tensors = gemma_tensors;
});

const Architecture gemma3_text = changed(gemma2, [](Architecture& a) {
  a.model_type = "gemma3_text";
  a.sizes = {.vocabulary = 262208, .d_model = 2304, .d_ff = 9216, .layers = 26, .heads = 8};
  a.longest = 131072;
  a.qk_norm = true;
  a.full_every = 6;
  a.rope_base = 1000000;
  a.sliding_rope_base = 10000;
  a.has_score_cap = false;
  a.score_cap = a.logit_cap = 0;
  a.prefixes = {"model.", "model.language_model.", "language_model.model.", ""};
  a.head_names = {"lm_head", "language_model.lm_head"};
});

const Architecture gemma3 = changed(gemma3_text, [](Architecture& a) {
  a.model_type = "gemma3";
  a.text_options = "text_config";
  a.has_logit_cap = false;  // the public library gives the scores of this one as they are
});

const Architecture phi3 = changed(llama, [](Architecture& a) {
  a.model_type = "phi3";
  a.longest = 4096;
  a.norm.eps = 1e-5;
  a.qkv_bias = a.output_bias = a.feed_forward_bias = Biased::never;
  a.windows = Windows::every_layer;
  a.partial_rotary = a.only_longrope = true;
  a.original_length = 4096;
  a.tensors = phi3_tensors;
});

const Architecture gpt_neox = {.model_type = "gpt_neox",
                               .longest = 2048,
                               .norm = {.kind = NormKind::layer, .eps = 1e-5},
                               .eps_option = "layer_norm_eps",
                               .qkv_bias = Biased::as_option,
                               .output_bias = Biased::as_option,
                               .feed_forward_bias = Biased::always,
                               .attention_bias = true,
                               .activation = "gelu",
                               .gated = false,
                               .has_key_heads = false,
                               .rope_base_option = "rotary_emb_base",
                               .rotary_share_option = "rotary_pct",
                               .partial_rotary = true,
                               .rotary_share = 0.25,
                               .parallel_residual = true,
                               .prefixes = {"gpt_neox.", ""},
                               .head_names = {"embed_out", "lm_head"},
                               .tensors = neox_tensors};

const Architecture glm4 = changed(llama, [](Architecture& a) {
  a.model_type = "glm4";
  a.longest = 131072;
  a.norm = {.place = NormPlace::both, .eps = 1.5625e-07};
  a.output_bias = a.feed_forward_bias = Biased::never;
  a.attention_bias = true;
  a.key_heads = 2;
  a.head_dim = 128;
  a.pairing = RopePairing::neighbours;
  a.partial_rotary = true;
  a.rotary_share = 0.5;
  a.tensors = glm4_tensors;
});

const Architecture* const published[] = {&llama,  &mistral,     &smollm3, &qwen2, &qwen3,    &olmo2,
                                         &gemma2, &gemma3_text, &gemma3,  &phi3,  &gpt_neox, &glm4};

// Far beyond any model, as in settings/decoder_config.h.
constexpr SizeRange widths = {1, 1 << 20}, counts = {1, 1 << 16}, lengths = {1, std::int64_t{1} << 40};
constexpr NumberRange positive = positive_up_to(largest_float), factors = {1e-6, 1e12, true, true};
constexpr double default_query_scalar = 256;

Activation activation_of(const Architecture& a, const ModelOptions& options) {
  struct Name {
    std::string_view name;
    Activation activation;
  };
  constexpr Name names[] = {{"silu", Activation::silu},
                            {"swish", Activation::silu},
                            {"gelu", Activation::gelu},
                            {"gelu_pytorch_tanh", Activation::gelu_tanh},
                            {"gelu_new", Activation::gelu_tanh},
                            {"gelu_fast", Activation::gelu_tanh},
                            {"gelu_python", Activation::gelu},
                            {"gelu_python_tanh", Activation::gelu_tanh},
                            {"gelu_accurate", Activation::gelu_tanh},
                            {"relu", Activation::relu},
                            {"relu2", Activation::squared_relu}};
  const std::string name = options.text(a.activation_option, a.activation);
  const auto* found = std::ranges::find(names, name, &Name::name);
  if (found == std::end(names))
    options.fail(a.activation_option, "known are silu, gelu, gelu_pytorch_tanh, gelu_new, gelu_fast, relu and relu2");
  return found->activation;
}

bool biased(Biased kind, const ModelOptions& options, std::string_view option, bool without) {
  return kind == Biased::always || (kind == Biased::as_option && options.flag(option, without));
}

void set_sizes(const Architecture& a, const ModelOptions& options, DecoderConfig& c) {
  const auto size = [&](std::string_view name, const SizeRange& range, std::int64_t without) {
    return without == 0 ? options.size(name, range) : options.size(name, range, without);
  };
  c.vocabulary = size("vocab_size", {1, 1 << 24}, a.sizes.vocabulary);
  c.d_model = size("hidden_size", widths, a.sizes.d_model);
  c.layers = size("num_hidden_layers", {1, 4096}, a.sizes.layers);
  c.heads = size("num_attention_heads", counts, a.sizes.heads);
  c.d_ff = size("intermediate_size", {1, 1 << 24}, a.sizes.d_ff);
  c.longest = options.size("max_position_embeddings", lengths, a.longest);
  c.kv_heads = c.heads;
  if (a.has_key_heads)
    c.kv_heads = options.size("num_key_value_heads", counts,
                              a.key_heads == 0 || options.mentions("num_key_value_heads") ? c.heads : a.key_heads);
  if (c.heads % c.kv_heads != 0)
    options.fail("num_key_value_heads", fmt::format("expected a divisor of num_attention_heads, {}", c.heads));
  const bool says = a.has_key_heads && options.has("head_dim");
  const bool divides = c.d_model % c.heads == 0;
  if (!says && a.head_dim == 0 && !divides)
    options.fail("hidden_size",
                 fmt::format("without head_dim, expected a multiple of num_attention_heads, {}", c.heads));
  c.d_k = says ? options.size("head_dim", {2, 1 << 16}) : a.head_dim != 0 ? a.head_dim : c.d_model / c.heads;
  if (c.d_k % 2 != 0)
    options.fail(says ? "head_dim" : "hidden_size", "expected heads of an even width: RoPE turns pairs");
}

// The layers without RoPE.
void set_rope_layers(const ModelOptions& options, DecoderConfig& c) {
  const auto layers = static_cast<std::size_t>(c.layers);
  if (options.has("no_rope_layers")) {
    for (const double value : options.numbers("no_rope_layers", {0, 1, true, true}, layers))
      c.layer_has_rope.push_back(value != 0);
    c.layer_has_rope.resize(layers);
    return;
  }
  const std::int64_t interval = options.size("no_rope_layer_interval", {1, 4096}, 4);
  for (std::int64_t i = 0; i < c.layers; ++i) c.layer_has_rope.push_back((i + 1) % interval != 0);
}

// Whether a layer has the window where layer_types is absent.
bool slides(const Architecture& a, const ModelOptions& options, const DecoderConfig& c, std::int64_t layer) {
  switch (a.windows) {
    case Windows::every_layer:
      return true;
    case Windows::but_each_nth:
      return (layer + 1) % options.size("sliding_window_pattern", {1, 4096}, a.full_every) != 0;
    case Windows::from_layer_on:
      return layer >= options.size("max_window_layers", {0, 4096}, 28);
    case Windows::without_rope:
      return !c.has_rope(layer);
    case Windows::none:
      break;
  }
  return false;
}

void set_windows(const Architecture& a, const ModelOptions& options, DecoderConfig& c) {
  const bool says_null = options.mentions("sliding_window") && !options.has("sliding_window");
  std::int64_t window = a.windows == Windows::none || says_null ? 0 : options.size("sliding_window", lengths, a.window);
  const bool optional = a.windows == Windows::from_layer_on || a.windows == Windows::without_rope;
  if (optional && !options.flag("use_sliding_window", false)) window = 0;
  c.windows.assign(static_cast<std::size_t>(c.layers), 0);
  if (window != 0)
    for (std::int64_t i = 0; i < c.layers; ++i)
      if (slides(a, options, c, i)) c.windows[static_cast<std::size_t>(i)] = window;
  if (!options.has("layer_types")) {
    const bool some = a.windows == Windows::but_each_nth && slides(a, options, c, 0);
    if (some && window == 0) options.fail("sliding_window", "layers with sliding_attention need it");
    return;
  }
  // They decide where an architecture has layers of both kinds, and must agree with it where it has one kind.
  const bool decide = optional || a.windows == Windows::but_each_nth;
  const std::vector<std::string> types = options.texts("layer_types", c.windows.size());
  if (types.size() != c.windows.size()) options.fail("layer_types", fmt::format("expected {} of them", c.layers));
  for (std::size_t i = 0; i < types.size(); ++i) {
    const bool sliding = types[i] == "sliding_attention";
    if (!sliding && types[i] != "full_attention")
      options.fail("layer_types", "known are full_attention and sliding_attention");
    if (decide && sliding && window == 0) options.fail("layer_types", "sliding_attention needs sliding_window");
    if (!decide && sliding != (c.windows[i] != 0))
      options.fail("layer_types", fmt::format("{} has {} in every layer", a.model_type,
                                              c.windows[i] != 0 ? "sliding_attention" : "full_attention"));
    c.windows[i] = sliding ? window : 0;
  }
}

RopeScalingKind scaling_kind(const Architecture& a, const ModelOptions& rope) {
  struct Name {
    std::string_view name;
    RopeScalingKind kind;
  };
  constexpr Name names[] = {{"default", RopeScalingKind::none},    {"linear", RopeScalingKind::linear},
                            {"dynamic", RopeScalingKind::dynamic}, {"llama3", RopeScalingKind::llama3},
                            {"yarn", RopeScalingKind::yarn},       {"longrope", RopeScalingKind::longrope}};
  const char* option = rope.has("rope_type") ? "rope_type" : "type";
  std::string name = rope.text(option, "default");
  if (a.only_longrope && (name == "su" || name == "yarn")) name = "longrope";
  const auto* found = std::ranges::find(names, name, &Name::name);
  if (found == std::end(names) || (a.only_longrope && name != "default" && name != "longrope"))
    rope.fail(option, a.only_longrope ? "known are default and longrope"
                                      : "known are default, linear, dynamic, llama3, yarn and longrope");
  return found->kind;
}

// The options that a RoPE is read from: its own object, and those beside it, which older files have.
struct RopeOptions {
  const ModelOptions& rope;
  const ModelOptions& model;
  bool of_all_layers = true;   // not one of several, by kinds of layers
  double base = 0, share = 1;  // where the object is silent
};

double original_length(const Architecture& a, const RopeOptions& options, const DecoderConfig& c) {
  constexpr const char* name = "original_max_position_embeddings";
  if (options.of_all_layers && options.model.has(name)) return static_cast<double>(options.model.size(name, lengths));
  if (options.of_all_layers && a.original_length != 0) return a.original_length;
  if (options.rope.has(name)) return options.rope.number(name, {1, 1e12, true, true});
  return static_cast<double>(c.longest);
}

double extension_factor(const RopeOptions& options, const DecoderConfig& c, double original) {
  if (options.rope.has("factor")) return options.rope.number("factor", factors);
  return static_cast<double>(c.longest) / original;
}

// 0.1·m·ln(factor) + 1 (arXiv 2309.00071, section 3.4); with mscale and mscale_all_dim the quotient of two.
double yarn_magnitude(const ModelOptions& rope, double factor) {
  const auto magnitude = [&](double m) { return factor <= 1 ? 1.0 : 0.1 * m * std::log(factor) + 1; };
  if (rope.has("attention_factor")) return rope.number("attention_factor", factors);
  const double m = rope.number("mscale", zero_up_to(1e6), 0), all = rope.number("mscale_all_dim", zero_up_to(1e6), 0);
  return m != 0 && all != 0 ? magnitude(m) / magnitude(all) : magnitude(1);
}

RopeScaling scaling_of(const Architecture& a, const RopeOptions& options, const DecoderConfig& c, std::int64_t dims) {
  const std::int64_t pairs = (dims + 1) / 2;
  const ModelOptions& rope = options.rope;
  RopeScaling s;
  s.kind = scaling_kind(a, rope);
  switch (s.kind) {
    case RopeScalingKind::none:
      break;
    case RopeScalingKind::dynamic:
      if (pairs < 2) rope.fail("rope_type", "expected heads in which more than one pair turns");
      [[fallthrough]];
    case RopeScalingKind::linear:
      s.factor = rope.number("factor", factors);
      break;
    case RopeScalingKind::llama3:
      s.factor = rope.number("factor", factors);
      s.low_frequency = rope.number("low_freq_factor", factors);
      s.high_frequency = rope.number("high_freq_factor", factors);
      if (s.high_frequency <= s.low_frequency) rope.fail("high_freq_factor", "expected more than low_freq_factor");
      s.original_length = original_length(a, options, c);
      break;
    case RopeScalingKind::yarn: {
      if (dims % 2 != 0)
        rope.fail(rope.has("rope_type") ? "rope_type" : "type",
                  fmt::format("it needs an even number of dimensions that turn, and {} do", dims));
      s.original_length = original_length(a, options, c);
      s.factor = extension_factor(options, c, s.original_length);
      const double fast = rope.number("beta_fast", zero_up_to(1e6), 0),
                   slow = rope.number("beta_slow", zero_up_to(1e6), 0);
      s.beta_fast = fast == 0 ? 32 : fast;
      s.beta_slow = slow == 0 ? 1 : slow;
      s.whole_dimensions = rope.flag("truncate", true);
      s.magnitude = yarn_magnitude(rope, s.factor);
      break;
    }
    case RopeScalingKind::longrope: {
      for (const char* unknown : {"short_mscale", "long_mscale"})
        if (rope.has(unknown)) rope.fail(unknown, "expected longrope without it");
      const auto count = static_cast<std::size_t>(pairs);
      s.short_factors = rope.numbers("short_factor", factors, count);
      s.long_factors = rope.numbers("long_factor", factors, count);
      if (s.short_factors.size() != count) rope.fail("short_factor", fmt::format("expected {} numbers", count));
      if (s.long_factors.size() != count) rope.fail("long_factor", fmt::format("expected {} numbers", count));
      s.original_length = original_length(a, options, c);
      s.factor = extension_factor(options, c, s.original_length);
      if (rope.has("attention_factor"))
        s.magnitude = rope.number("attention_factor", factors);
      else if (s.factor > 1)
        s.magnitude = std::sqrt(1 + std::log(s.factor) / std::log(s.original_length));
      break;
    }
  }
  return s;
}

Rope rope_of(const Architecture& a, const RopeOptions& options, const DecoderConfig& c) {
  Rope rope{.base = options.rope.number("rope_theta", {1, largest_float, false, true}, options.base),
            .pairing = a.pairing,
            .scaling = {},
            .float32_angles = true};
  const double share = options.rope.number("partial_rotary_factor", {0, 1, false, true}, options.share);
  if (!a.partial_rotary && share != 1)
    options.rope.fail("partial_rotary_factor", fmt::format("in {} a head turns as a whole", a.model_type));
  const auto dims = static_cast<std::int64_t>(share * static_cast<double>(c.d_k));
  if (dims < 1) options.rope.fail("partial_rotary_factor", "expected at least one pair of dimensions that turns");
  rope.dims = dims == c.d_k ? 0 : dims;
  rope.scaling = scaling_of(a, options, c, dims);
  return rope;
}

const nlohmann::json no_options = nlohmann::json::object();

// The object of RoPE's options: rope_scaling of older files goes before rope_parameters.
ModelOptions flat_rope_options(const ModelOptions& options) {
  for (const char* name : {"rope_scaling", "rope_parameters"})
    if (options.has(name)) {
      ModelOptions found = options.object(name);
      if (!found.raw().empty()) return found;
    }
  return {no_options, options.origin()};
}

void set_rope(const Architecture& a, const ModelOptions& options, DecoderConfig& c) {
  const double base = options.number(a.rope_base_option, {1, largest_float, false, true}, a.rope_base);
  // null is another value than none: the whole head turns
  const bool is_null = options.mentions(a.rotary_share_option) && !options.has(a.rotary_share_option);
  const double share = options.number(a.rotary_share_option, {0, 1, false, true}, is_null ? 1 : a.rotary_share);
  if (a.sliding_rope_base == 0) {
    const ModelOptions rope = flat_rope_options(options);
    for (const char* kind : {"full_attention", "sliding_attention"})
      if (rope.has(kind)) rope.fail(kind, fmt::format("in {} all layers have one RoPE", a.model_type));
    c.rope = rope_of(a, {rope, options, /*of_all_layers=*/true, base, share}, c);
    return;
  }
  const ModelOptions rope =
      options.has("rope_parameters") ? options.object("rope_parameters") : ModelOptions(no_options, options.origin());
  for (const char* name : {"rope_theta", "rope_type", "type", "factor"})
    if (rope.has(name)) rope.fail(name, "expected it in full_attention or sliding_attention");
  const auto part = [&](const char* name) { return rope.has(name) ? rope.object(name).raw() : no_options; };
  nlohmann::json full = part("full_attention");
  const nlohmann::json sliding = part("sliding_attention");
  if (options.has("rope_scaling")) full.update(options.object("rope_scaling").raw());
  const ModelOptions full_options(full, options.origin(), "rope_parameters.full_attention.");
  const ModelOptions sliding_options(sliding, options.origin(), "rope_parameters.sliding_attention.");
  const double sliding_base =
      options.number("rope_local_base_freq", {1, largest_float, false, true}, a.sliding_rope_base);
  c.rope = rope_of(a, {full_options, options, /*of_all_layers=*/false, base, share}, c);
  c.sliding_rope = rope_of(a, {sliding_options, options, /*of_all_layers=*/false, sliding_base, share}, c);
}

// A soft-cap: absent, the default; null, none.
double cap_of(const ModelOptions& options, const char* name, double without) {
  if (!options.mentions(name)) return without;
  return options.has(name) ? options.number(name, positive) : 0;
}

void refuse_unknown_values(const Architecture& a, const ModelOptions& options) {
  if (options.has("quantization_config"))
    options.fail("quantization_config", "quantised safetensors cannot be read; give the model unquantised, or as GGUF");
  if (options.flag("use_bidirectional_attention", false))
    options.fail("use_bidirectional_attention", "expected causal attention");
  if (!a.has_score_cap && options.has("attn_logit_softcapping"))
    options.fail("attn_logit_softcapping", fmt::format("{} is known without it", a.model_type));
}

}  // namespace

const Architecture& own_architecture() {
  return study_model;
}

const Architecture& published_architecture(const std::string& model_type, const std::string& origin) {
  std::vector<std::string_view> names;
  for (const Architecture* architecture : published) {
    if (architecture->model_type == model_type) return *architecture;
    names.push_back(architecture->model_type);
  }
  fail_input("{}: model_type is '{}'; known are {}", origin, excerpt(model_type, 80), fmt::join(names, ", "));
}

DecoderConfig decoder_config(const Architecture& a, const ModelOptions& given) {
  const ModelOptions options = a.text_options.empty() ? given : given.object(a.text_options);
  refuse_unknown_values(a, given);
  refuse_unknown_values(a, options);
  DecoderConfig c;
  set_sizes(a, options, c);
  c.qk_norm = a.qk_norm;
  c.qk_norm_over = a.qk_norm_over;
  c.norm = a.norm;
  c.norm.eps = options.number(a.eps_option, positive, a.norm.eps);
  if (a.skips_rope) set_rope_layers(options, c);
  set_windows(a, options, c);
  set_rope(a, options, c);
  c.activation = activation_of(a, options);
  c.gated = a.gated;
  c.bias.qkv = biased(a.qkv_bias, options, "attention_bias", a.attention_bias);
  c.bias.output = biased(a.output_bias, options, "attention_bias", a.attention_bias);
  c.bias.feed_forward = biased(a.feed_forward_bias, options, "mlp_bias", false);
  if (!a.gemma_scales) c.embedding_scale = 1;
  if (a.gemma_scales)
    c.attention_scale = 1 / std::sqrt(options.number("query_pre_attn_scalar", positive, default_query_scalar));
  if (a.has_score_cap) c.score_cap = cap_of(options, "attn_logit_softcapping", a.score_cap);
  if (a.has_logit_cap) c.logit_cap = cap_of(options, "final_logit_softcapping", a.logit_cap);
  c.parallel_residual = a.parallel_residual && options.flag("use_parallel_residual", true);
  c.tied_head = given.flag("tie_word_embeddings", options.flag("tie_word_embeddings", a.tied_head));
  return c;
}

StoredNames stored_names(const Architecture& a, std::string_view prefix, std::string_view head,
                         const std::string& parameter) {
  if (a.tensors.empty()) return {{parameter}};
  std::string_view name = parameter;
  const std::size_t dot = name.rfind('.');
  const std::string_view ending = name.substr(dot) == ".bias" ? ".bias" : ".weight";
  name = name.substr(0, dot);
  if (name == "head") return {{fmt::format("{}{}", head, ending)}};
  std::string layer;
  if (name.starts_with("layers.")) {
    const std::size_t end = name.find('.', std::string_view("layers.").size()) + 1;
    layer = fmt::format("{}{}", a.layer_prefix,
                        name.substr(std::string_view("layers.").size(), end - std::string_view("layers.").size()));
    name = name.substr(end);
  }
  const auto found = std::ranges::find(a.tensors, name, &StoredTensor::ours);
  HEADSCOPE_CHECK(found != a.tensors.end(), "{} has no name in {}", parameter, a.model_type);
  StoredNames names{{}, found->rows};
  for (const std::string_view stored : found->stored)
    if (!stored.empty()) names.names.push_back(fmt::format("{}{}{}{}", prefix, layer, stored, ending));
  return names;
}

}  // namespace headscope
