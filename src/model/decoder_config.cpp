#include "model/decoder_config.h"

#include <algorithm>

#include "core/bounds.h"

namespace headscope {

namespace {

struct OldWord {
  std::string_view word;
  bool qk_norm;
  const char* qk_gain;
};
constexpr std::array<OldWord, 3> old_words = {
    {{"learned", true, "learned"}, {"frozen", true, "fixed"}, {"none", false, "learned"}}};

const OldWord* old_word(std::string_view word) {
  const auto found = std::ranges::find(old_words, word, &OldWord::word);
  return found == old_words.end() ? nullptr : &*found;
}

}  // namespace

std::vector<ConfigEntry> in_current_words(std::span<const ConfigEntry> entries) {
  std::vector<ConfigEntry> current;
  for (const ConfigEntry& entry : entries) {
    const OldWord* old = entry.key == "model.qk_norm" ? old_word(entry.value) : nullptr;
    if (old == nullptr) {
      current.push_back(entry);
      continue;
    }
    if (std::ranges::find(entries, "train.qk_gain", &ConfigEntry::key) != entries.end())
      fail_input(
          "{}: model.qk_norm={} is an earlier word that sets train.qk_gain, too, and train.qk_gain is given; say "
          "model.qk_norm={}",
          entry.where, entry.value, old->qk_norm);
    current.push_back({entry.key, old->qk_norm ? "true" : "false", entry.where});
    current.push_back({"train.qk_gain", old->qk_gain, entry.where});
  }
  return current;
}

nlohmann::ordered_json in_current_words(nlohmann::ordered_json config) {
  if (!config.is_object() || !config.contains("model") || !config["model"].is_object()) return config;
  nlohmann::ordered_json& qk_norm = config["model"]["qk_norm"];
  const OldWord* old = qk_norm.is_string() ? old_word(qk_norm.get<std::string>()) : nullptr;
  if (old == nullptr) return config;
  qk_norm = old->qk_norm;
  config["train"]["qk_gain"] = old->qk_gain;
  return config;
}

void validate(const DecoderConfig& config) {
  constexpr std::int64_t largest_vocabulary = 1 << 24, largest_width = 1 << 20, largest_inner_width = 1 << 24;
  constexpr std::int64_t most_layers = 4096, most_heads = 1 << 16, largest_head = 1 << 16;  // far beyond any model
  // With these, the weights of all layers are fewer than 2^60: counts of them, in bytes too, are exact.
  constexpr std::int64_t largest_heads_together = 1 << 24;
  check_size("model.vocabulary", config.vocabulary, 1, largest_vocabulary);
  check_size("model.d_model", config.d_model, 1, largest_width);
  check_size("model.layers", config.layers, 1, most_layers);
  check_size("model.heads", config.heads, 1, most_heads);
  check_size("model.kv_heads", config.kv_heads, 1, most_heads);
  check_size("model.d_k", config.d_k, 2, largest_head);
  check_size("model.d_ff", config.d_ff, 1, largest_inner_width);
  checked_product({{"model.heads", config.heads}, {"model.d_k", config.d_k}}, largest_heads_together, "dimensions");
  if (config.heads % config.kv_heads != 0)
    fail_input("model.heads is {}, model.kv_heads {}; expected heads divisible by kv_heads", config.heads,
               config.kv_heads);
  if (config.d_k % 2 != 0) fail_input("model.d_k is {}; expected an even number: RoPE turns pairs", config.d_k);
  check_number("model.norm_eps", config.norm_eps, positive_up_to(largest_float));
  check_number("model.rope_base", config.rope_base, {1, largest_float, false, true});
  check_number("model.init_std", config.init_std, positive_up_to(largest_float));
}

ParameterCounts count_parameters(const DecoderConfig& config) {
  const std::int64_t q = config.heads * config.d_k, kv = config.kv_heads * config.d_k;
  const std::int64_t layer_matrices = config.d_model * (2 * q + 2 * kv) + 2 * config.d_model * config.d_ff;
  const std::int64_t layer_gains = 2 * config.d_model + (config.qk_norm ? 2 * config.d_k : 0);
  ParameterCounts counts;
  counts.embedding = config.vocabulary * config.d_model;
  counts.matrices = config.layers * layer_matrices;
  counts.total = counts.embedding + counts.matrices + config.layers * layer_gains + config.d_model;
  return counts;
}

}  // namespace headscope
