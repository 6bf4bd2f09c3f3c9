#include "model/decoder_config.h"

namespace headscope {

void validate(const DecoderConfig& config) {
  const auto positive = [](const char* key, std::int64_t value) {
    if (value < 1) fail_input("model.{} is {}; expected 1 or more", key, value);
  };
  positive("vocabulary", config.vocabulary);
  positive("d_model", config.d_model);
  positive("layers", config.layers);
  positive("heads", config.heads);
  positive("kv_heads", config.kv_heads);
  positive("d_k", config.d_k);
  positive("d_ff", config.d_ff);
  if (config.heads % config.kv_heads != 0)
    fail_input("model.heads is {}, model.kv_heads {}; expected heads divisible by kv_heads", config.heads,
               config.kv_heads);
  if (config.d_k % 2 != 0) fail_input("model.d_k is {}; expected an even number: RoPE turns pairs", config.d_k);
  if (!(config.norm_eps > 0)) fail_input("model.norm_eps is {}; expected more than 0", config.norm_eps);
  if (!(config.rope_base > 1)) fail_input("model.rope_base is {}; expected more than 1", config.rope_base);
  if (!(config.init_std > 0)) fail_input("model.init_std is {}; expected more than 0", config.init_std);
}

ParameterCounts count_parameters(const DecoderConfig& config) {
  const std::int64_t q = config.heads * config.d_k, kv = config.kv_heads * config.d_k;
  const std::int64_t layer_matrices = config.d_model * (2 * q + 2 * kv) + 2 * config.d_model * config.d_ff;
  const std::int64_t layer_gains = 2 * config.d_model + (config.qk_norm == QkNorm::none ? 0 : 2 * config.d_k);
  ParameterCounts counts;
  counts.embedding = config.vocabulary * config.d_model;
  counts.matrices = config.layers * layer_matrices;
  counts.total = counts.embedding + counts.matrices + config.layers * layer_gains + config.d_model;
  return counts;
}

}  // namespace headscope
