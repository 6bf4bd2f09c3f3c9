#include "settings/decoder_config.h"

#include "core/bounds.h"

namespace headscope {

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
