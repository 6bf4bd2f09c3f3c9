#include "probe/probe.h"

#include "probe/gain.h"
#include "probe/key_rank.h"

namespace headscope {

ProbeResult probe_model(const Decoder& model, const std::vector<Batch>& batches, at::ScalarType type, bool with_loss) {
  const at::NoGradGuard no_gradients;
  ProbeResult result;
  const Hooks measure_keys{.observe = [&](std::int64_t, const HeadVectors& vectors) {
    result.key_pr.push_back(key_participation_ratios(vectors.k_bthd));
  }};
  // Where training computes in float32, too, one pass over the first batch gives both keys and loss.
  const bool one_pass = with_loss && type == at::kFloat;
  if (!one_pass) final_hidden(model, batches.front().tokens_bt, at::kFloat, measure_keys);
  if (with_loss) {
    double sum = 0;
    for (std::size_t i = 0; i < batches.size(); ++i) {
      const Hooks hooks = one_pass && i == 0 ? measure_keys : Hooks();
      sum += next_token_loss(model, batches[i].tokens_bt, batches[i].targets_bt, type, hooks).item<double>();
    }
    result.val_loss = sum / static_cast<double>(batches.size());
  }
  if (model.config.qk_norm != QkNorm::none) {
    for (const DecoderLayer& layer : model.layers) {
      result.q_gain.push_back(gain_values(layer.q_gain));
      result.k_gain.push_back(gain_values(layer.k_gain));
    }
  }
  return result;
}

}  // namespace headscope
