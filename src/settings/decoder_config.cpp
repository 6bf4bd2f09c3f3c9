#include "settings/decoder_config.h"

#include "core/bounds.h"

namespace headscope {

void validate(const DecoderConfig& config) {
  check_ranges(config);
  constexpr std::int64_t largest_heads_together = 1 << 24;
  checked_product({{"model.heads", config.heads}, {"model.d_k", config.d_k}}, largest_heads_together, "dimensions");
  if (config.heads % config.kv_heads != 0)
    fail_input("model.heads is {}, model.kv_heads {}; expected heads divisible by kv_heads", config.heads,
               config.kv_heads);
  if (config.d_k % 2 != 0) fail_input("model.d_k is {}; expected an even number: RoPE turns pairs", config.d_k);
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
