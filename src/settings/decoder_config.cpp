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
  const DecoderConfig& c = config;
  const std::int64_t q = c.query_rows(), kv = c.key_rows(), d = c.d_model, ff = c.d_ff;
  const std::int64_t norm = c.norm.kind == NormKind::layer ? 2 * d : d;
  const std::int64_t norms = norm * (c.norm.place == NormPlace::both ? 4 : 2);
  const std::int64_t qk_gains = c.qk_norm ? c.gain_size(q) + c.gain_size(kv) : 0;
  const std::int64_t wide = c.gated ? 2 : 1;  // matrices of the feed-forward layer from d_model to d_ff
  const std::int64_t biases =
      (c.bias.qkv ? q + 2 * kv : 0) + (c.bias.output ? d : 0) + (c.bias.feed_forward ? wide * ff + d : 0);
  ParameterCounts counts;
  counts.embedding = c.vocabulary * d * (c.tied_head ? 1 : 2);
  counts.matrices = c.layers * (d * (2 * q + 2 * kv) + (wide + 1) * d * ff);
  counts.total = counts.embedding + counts.matrices + c.layers * (norms + qk_gains + biases) + norm;
  return counts;
}

bool is_of_the_source_study(const DecoderConfig& c) {
  const bool plain_norm = c.norm.kind == NormKind::rms && c.norm.place == NormPlace::before && c.norm.offset == 0;
  const bool plain_rope = c.rope.dims == 0 && c.rope.pairing == RopePairing::neighbours &&
                          c.rope.scaling.kind == RopeScalingKind::none && !c.rope.float32_angles && !c.sliding_rope &&
                          c.layer_has_rope.empty();
  const bool plain_heads = (!c.qk_norm || c.qk_norm_over == QkNormOver::one_head) && c.windows.empty() &&
                           c.score_cap == 0 && c.logit_cap == 0;
  const bool plain_layer = c.activation == Activation::squared_relu && !c.gated && !c.bias.qkv && !c.bias.output &&
                           !c.bias.feed_forward && !c.parallel_residual && c.tied_head;
  return plain_norm && plain_rope && plain_heads && plain_layer;
}

double training_flops_per_token(const DecoderConfig& config, std::int64_t seq_len) {
  const auto head = static_cast<double>(config.vocabulary * config.d_model);  // a tied one, too, is a product
  const auto products = static_cast<double>(count_parameters(config).matrices) + head;
  const auto attention = 4.0 * static_cast<double>(seq_len) / 2 * static_cast<double>(config.heads * config.d_k);
  return 6 * products + 3.5 * attention * static_cast<double>(config.layers);
}

}  // namespace headscope
