#include "model/gguf_model.h"

#include <algorithm>

#include "core/error.h"

namespace headscope {
namespace {

using nlohmann::json;

// How the files of an architecture (general.architecture) differ from the published folder of its model_type.
struct GgufRow {
  std::string_view name, model_type;
  bool turned_pairs = false;     // rows of queries and keys are stored as neighbouring pairs, which RoPE then turns
  bool fused_qkv = false;        // one matrix [q; k; v]
  bool fused_gate = false;       // ffn_up is [gate; up]
  std::int64_t wide_layers = 0;  // the size of model, by its layers, whose scores are scaled by hidden_size / heads
};
constexpr GgufRow gguf_rows[] = {
    {.name = "llama", .model_type = "llama", .turned_pairs = true},
    {.name = "smollm3", .model_type = "smollm3", .turned_pairs = true},
    {.name = "qwen2", .model_type = "qwen2"},
    {.name = "qwen3", .model_type = "qwen3"},
    {.name = "olmo2", .model_type = "olmo2"},
    {.name = "gemma2", .model_type = "gemma2", .wide_layers = 46},
    {.name = "gemma3", .model_type = "gemma3_text", .wide_layers = 62},
    {.name = "phi3", .model_type = "phi3", .fused_qkv = true, .fused_gate = true},
    {.name = "gptneox", .model_type = "gpt_neox", .fused_qkv = true},
    {.name = "glm4", .model_type = "glm4", .fused_gate = true},
};

const GgufRow& row_of(const std::string& architecture, const std::string& origin) {
  std::vector<std::string_view> names;
  for (const GgufRow& row : gguf_rows) {
    if (row.name == architecture) return row;
    names.push_back(row.name);
  }
  fail_input("{}: general.architecture is '{}'; known are {}", origin, excerpt(architecture, 80),
             fmt::join(names, ", "));
}

Architecture stored_as(const GgufRow& row, const std::string& origin) {
  Architecture a = published_architecture(std::string(row.model_type), origin);
  const StoredTensor qkv = row.fused_qkv ? StoredTensor{"attention.qkv", {"attn_qkv"}}
                                         : StoredTensor{"attention.qkv",
                                                        {"attn_q", "attn_k", "attn_v"},
                                                        row.turned_pairs ? StoredRows::turned_pairs : StoredRows::all};
  const std::string_view gate = row.fused_gate ? "ffn_up" : "ffn_gate";
  a.norm.offset = 0;  // the files hold the gains themselves
  a.text_options = {};
  a.layer_prefix = "blk.";
  a.prefixes = {""};
  a.head_names = {"output"};
  a.tensors = {
      {"embedding", {"token_embd"}},
      {"attention_norm", {"attn_norm"}},
      qkv,
      {"attention.q_norm", {"attn_q_norm"}},
      {"attention.k_norm", {"attn_k_norm"}},
      {"attention.output", {"attn_output"}},
      {"attention_out_norm", {"post_attention_norm"}},
      {"feed_forward_norm", {"ffn_norm"}},
      {"feed_forward.gate", {gate}, row.fused_gate ? StoredRows::first_half : StoredRows::all},
      {"feed_forward.up", {"ffn_up"}, row.fused_gate ? StoredRows::second_half : StoredRows::all},
      {"feed_forward.down", {"ffn_down"}},
      {"feed_forward_out_norm", {"post_ffw_norm"}},
      {"final_norm", {"output_norm"}},
  };
  return a;
}

class GgufTranslator {
 public:
  GgufTranslator(const Gguf& file, const GgufRow& row)
      : file_(file), row_(row), data_(file.metadata()), prefix_(std::string(row.name) + ".") {}

  GgufModel translate() {
    model_.architecture = stored_as(row_, file_.path().string());
    refuse_unknown();
    sizes();
    copy_integer("context_length", "max_position_embeddings");
    copy_number("attention.layer_norm_rms_epsilon", "rms_norm_eps");
    copy_number("attention.layer_norm_epsilon", "layer_norm_eps");
    copy_number("attn_logit_softcapping", "attn_logit_softcapping");
    copy_number("final_logit_softcapping", "final_logit_softcapping");
    if (has("use_parallel_residual"))
      model_.options["use_parallel_residual"] = data_.boolean(key("use_parallel_residual"));
    model_.options["tie_word_embeddings"] = find("output.weight") == nullptr;
    const bool biased = find("blk.0.attn_q.bias") != nullptr || find("blk.0.attn_qkv.bias") != nullptr;
    model_.options["attention_bias"] = biased;
    model_.options["mlp_bias"] = find("blk.0.ffn_up.bias") != nullptr;
    windows();
    rope();
    return std::move(model_);
  }

 private:
  [[nodiscard]] std::string key(std::string_view name) const { return fmt::format("{}{}", prefix_, name); }
  [[nodiscard]] bool has(std::string_view name) const { return data_.contains(key(name)); }
  [[nodiscard]] const TensorView* find(std::string_view name) const {
    const auto found = std::ranges::find(file_.tensors(), name, &TensorView::name);
    return found == file_.tensors().end() ? nullptr : &*found;
  }
  void copy_integer(std::string_view name, const char* option) {
    if (has(name)) model_.options[option] = data_.integer(key(name));
  }
  void copy_number(std::string_view name, const char* option) {
    if (has(name)) model_.options[option] = data_.number(key(name));
  }

  // Keys that change what a model computes, in families that we do not know.
  void refuse_unknown() const {
    for (const char* name :
         {"expert_count", "attention.scale", "embedding_scale", "residual_scale", "logit_scale", "attention.clamp_kqv",
          "attention.max_alibi_bias", "attention.shared_kv_layers", "attention.temperature_length",
          "rope.scaling.alpha", "rope.scaling.yarn_attn_factor", "rope.scaling.yarn_log_multiplier"})
      if (has(name) && data_.number(key(name)) != 0)
        fail_input("{}: {} is {}; models with it are not known", file_.path().string(), key(name),
                   data_.number(key(name)));
    if (has("attention.causal") && !data_.boolean(key("attention.causal")))
      fail_input("{}: {} is false; expected causal attention", file_.path().string(), key("attention.causal"));
  }

  void sizes() {
    const TensorView* embedding = find("token_embd.weight");
    if (embedding == nullptr || embedding->shape.size() != 2)
      fail_input("{}: lacks a tensor of the model: token_embd.weight", file_.path().string());
    json& o = model_.options;
    o["vocab_size"] = embedding->shape[0];
    o["hidden_size"] = data_.integer(key("embedding_length"));
    o["num_hidden_layers"] = data_.integer(key("block_count"));
    o["num_attention_heads"] = heads_ = data_.integer(key("attention.head_count"));
    o["num_key_value_heads"] = data_.integer(key("attention.head_count_kv"), heads_);
    o["intermediate_size"] = data_.integer(key("feed_forward_length"));
    const std::int64_t hidden = data_.integer(key("embedding_length"));
    if (heads_ < 1 || hidden < 1) return;  // refused where the options are read
    head_dim_ = data_.integer(key("attention.key_length"), hidden / heads_);
    o["head_dim"] = head_dim_;
    const bool wide = row_.wide_layers != 0 && data_.integer(key("block_count")) == row_.wide_layers;
    o["query_pre_attn_scalar"] = wide ? hidden / heads_ : head_dim_;  // no file holds it
  }

  void windows() {
    const std::int64_t window = data_.integer(key("attention.sliding_window"), 0);
    if (window != 0 && model_.architecture.windows == Windows::none)
      fail_input("{}: {} is {}; {} is known without a window", file_.path().string(), key("attention.sliding_window"),
                 window, row_.name);
    model_.options["sliding_window"] = window == 0 ? json() : json(window);
    constexpr const char* pattern = "attention.sliding_window_pattern";
    if (!has(pattern) || model_.architecture.windows != Windows::but_each_nth) return;
    if (!data_.get(key(pattern)).is_list) {
      model_.options["sliding_window_pattern"] = data_.integer(key(pattern));
      return;
    }
    for (const bool slides : data_.booleans(key(pattern)))
      model_.options["layer_types"].push_back(slides ? "sliding_attention" : "full_attention");
  }

  [[nodiscard]] json factors(const char* name) {
    const TensorView* tensor = find(name);
    std::vector<float> values(value_count(*tensor));
    read_floats(*tensor, 0, values);
    model_.read_tensors.insert(name);
    return json(values);
  }

  // As transformers 5 has it.
  void rope() {
    json rope = json::object();
    if (has("rope.freq_base")) rope["rope_theta"] = data_.number(key("rope.freq_base"));
    // rope.scale_linear is that of older files. Without a kind a factor is a linear one, and 0 stands for 1.
    double factor = data_.number(key("rope.scaling.factor"), data_.number(key("rope.scale_linear"), 1));
    if (factor == 0) factor = 1;
    const std::string kind = data_.text(key("rope.scaling.type"), factor == 1 ? "none" : "linear");
    if (kind != "none" && !(kind == "linear" && factor == 1)) {
      rope["rope_type"] = kind;
      rope["factor"] = factor;
    }
    if (has("rope.scaling.original_context_length"))
      rope["original_max_position_embeddings"] = data_.integer(key("rope.scaling.original_context_length"));
    if (has("rope.scaling.yarn_beta_fast")) rope["beta_fast"] = data_.number(key("rope.scaling.yarn_beta_fast"));
    if (has("rope.scaling.yarn_beta_slow")) rope["beta_slow"] = data_.number(key("rope.scaling.yarn_beta_slow"));
    if (data_.number(key("rope.scaling.yarn_ext_factor"), 1) != 1)
      fail_input("{}: {} is {}; yarn is known with 1", file_.path().string(), key("rope.scaling.yarn_ext_factor"),
                 data_.number(key("rope.scaling.yarn_ext_factor")));
    if (has("rope.scaling.attn_factor")) {
      const double magnitude = data_.number(key("rope.scaling.attn_factor"));
      if (kind == "yarn" && magnitude != 1)
        fail_input("{}: {} is {}; yarn is known without it", file_.path().string(), key("rope.scaling.attn_factor"),
                   magnitude);
      if (kind != "yarn") rope["attention_factor"] = magnitude;
    }
    if (find("rope_freqs.weight") != nullptr) {
      // Divisors of the frequencies, for every length: llama3's scaling, computed beforehand.
      rope.update({{"rope_type", "longrope"}, {"attention_factor", 1}, {"factor", 1}});
      rope["short_factor"] = rope["long_factor"] = factors("rope_freqs.weight");
    }
    if (find("rope_factors_short.weight") != nullptr && find("rope_factors_long.weight") != nullptr) {
      rope["rope_type"] = "longrope";
      rope["short_factor"] = factors("rope_factors_short.weight");
      rope["long_factor"] = factors("rope_factors_long.weight");
      rope.erase("factor");
      model_.options["original_max_position_embeddings"] =
          data_.integer(key("rope.scaling.original_context_length"), data_.integer(key("context_length")));
    }
    const std::int64_t turning = data_.integer(key("rope.dimension_count"), head_dim_);
    // A little more than the share, so that rounding does not lose a dimension.
    if (turning != head_dim_ && head_dim_ > 0)
      rope["partial_rotary_factor"] = (static_cast<double>(turning) + 1e-6) / static_cast<double>(head_dim_);
    else
      rope["partial_rotary_factor"] = 1;
    if (model_.architecture.sliding_rope_base != 0) {  // an object for each kind of layer
      json sliding = json::object();
      if (has("rope.freq_base_swa")) sliding["rope_theta"] = data_.number(key("rope.freq_base_swa"));
      rope = {{"full_attention", rope}, {"sliding_attention", sliding}};
    }
    model_.options["rope_parameters"] = rope;
  }

  const Gguf& file_;
  const GgufRow& row_;
  const GgufMetadata& data_;
  std::string prefix_;
  std::int64_t heads_ = 0, head_dim_ = 0;
  GgufModel model_;
};

}  // namespace

GgufModel describe_gguf(const Gguf& file) {
  return GgufTranslator(file, row_of(file.metadata().text("general.architecture"), file.path().string())).translate();
}

}  // namespace headscope
