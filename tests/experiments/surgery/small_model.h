// A model and batches small enough for a test, and a forward pass of its own to compare with.
#pragma once

#include "model/decoder.h"
#include "probe/probe.h"

namespace headscope::test {

inline DecoderConfig small_config(bool qk_norm = true) {
  DecoderConfig config;
  config.vocabulary = 40;
  config.d_model = 32;
  config.layers = 3;
  config.heads = 4;
  config.kv_heads = 2;
  config.d_k = 8;
  config.d_ff = 48;
  config.qk_norm = qk_norm;
  config.init_std = 0.2;  // attention that matters, without training
  return config;
}

// Gains that differ, as training makes them.
inline Decoder small_model(bool qk_norm = true, std::uint64_t seed = 5) {
  Decoder model = make_decoder(small_config(qk_norm), seed);
  const at::NoGradGuard no_gradients;
  at::manual_seed(17);
  if (qk_norm)
    for (DecoderLayer& layer : model.layers) {
      layer.q_gain.copy_(at::rand({8}) * 2 + 0.2);
      layer.k_gain.copy_(at::randn({8}));
    }
  return model;
}

inline std::vector<Batch> small_batches(int count = 2) {
  at::manual_seed(3);
  std::vector<Batch> batches;
  for (int i = 0; i < count; ++i)
    batches.push_back({at::randint(40, {3, 24}, at::kLong), at::randint(40, {3, 24}, at::kLong)});
  return batches;
}

// Mean cross-entropy in float64 where attention is a plain running mean of the values. Written out for this test: it
// shares no code with the model.
inline double loss_with_running_means(const Decoder& model, const std::vector<Batch>& batches) {
  const DecoderConfig& c = model.config;
  const auto wide = [](const at::Tensor& x) { return x.detach().to(at::kDouble); };
  const auto norm = [&](const at::Tensor& x, const at::Tensor& gain) {
    return x / (x.pow(2).mean(-1, true) + c.norm.eps).sqrt() * wide(gain);
  };
  double sum = 0;
  for (const Batch& batch : batches) {
    at::Tensor x = wide(model.embedding).index({batch.tokens_bt}) * std::sqrt(static_cast<double>(c.d_model));
    const std::int64_t time = x.size(1);
    const at::Tensor counts = at::arange(1, time + 1, at::kDouble).reshape({1, time, 1});
    for (const DecoderLayer& layer : model.layers) {
      const at::Tensor values = at::matmul(norm(x, layer.attention_norm.gain),
                                           wide(layer.qkv.weight).slice(0, (c.heads + c.kv_heads) * c.d_k).t());
      const at::Tensor means = values.cumsum(1) / counts;  // [b, t, kv_heads·d]
      std::vector<at::Tensor> heads;
      for (std::int64_t head = 0; head < c.heads; ++head)
        heads.push_back(means.narrow(2, head / (c.heads / c.kv_heads) * c.d_k, c.d_k));
      x = x + at::matmul(at::cat(heads, 2), wide(layer.output.weight).t());
      const at::Tensor hidden =
          at::matmul(norm(x, layer.feed_forward_norm.gain), wide(layer.up.weight).t()).clamp_min(0).pow(2);
      x = x + at::matmul(hidden, wide(layer.down.weight).t());
    }
    const at::Tensor scores = at::matmul(norm(x, model.final_norm.gain), wide(model.embedding).t()).log_softmax(-1);
    sum -= scores.gather(2, batch.targets_bt.unsqueeze(2)).mean().item<double>();
  }
  return sum / static_cast<double>(batches.size());
}

}  // namespace headscope::test
