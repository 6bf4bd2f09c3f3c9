#include "probe/probe.h"

#include "probe/measure.h"

namespace headscope {

Gains gains_of(const Decoder& model) {
  Gains gains;
  if (!model.config.qk_norm) return gains;
  for (const DecoderLayer& layer : model.layers) {
    gains.q.push_back(to_doubles(layer.q_gain));
    gains.k.push_back(to_doubles(layer.k_gain));
  }
  return gains;
}

double validation_loss(const Decoder& model, const std::vector<Batch>& batches, at::ScalarType type,
                       const EditKeys& edit, const Observe& observe) {
  const at::NoGradGuard no_gradients;
  double sum = 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const Hooks hooks{.observe = i == 0 ? observe : Observe(), .edit_keys = edit};
    sum += next_token_loss(model, batches[i].tokens_bt, batches[i].targets_bt, type, hooks).item<double>();
  }
  return sum / static_cast<double>(batches.size());
}

ProbeResult probe_model(const Decoder& model, const std::vector<Batch>& batches, at::ScalarType type,
                        const MetricSelection& chosen, bool with_loss) {
  const at::NoGradGuard no_gradients;
  ProbeResult result;
  HeadMeasurer measurer(chosen);
  const Hooks measure = measurer.hooks();
  // Where training computes in float32, too, one pass over the first batch gives both heads and loss.
  const bool one_pass = with_loss && type == at::kFloat;
  if (!one_pass) final_hidden(model, batches.front().tokens_bt, at::kFloat, measure);
  if (with_loss) result.val_loss = validation_loss(model, batches, type, {}, one_pass ? measure.observe : Observe());
  result.layers = measurer.finish();
  if (chosen.has(MetricGroup::induction)) {
    std::vector<HeadValues> induction = measure_induction(model, batches.front().tokens_bt.size(1));
    for (std::size_t layer = 0; layer < result.layers.size(); ++layer) result.layers[layer].merge(induction[layer]);
  }
  if (chosen.has(MetricGroup::gain)) result.gains = gains_of(model);
  return result;
}

}  // namespace headscope
