#include "probe/probe.h"

#include "core/random.h"
#include "probe/attention_statistics.h"
#include "probe/key_statistics.h"

namespace headscope {
namespace {

// fill(inputs, targets) writes both.
template <class Fill>
Batch filled_batch(const TrainOptions& options, const ComputeDevice& device, Fill&& fill) {
  // A GPU fetches pinned memory by itself; from other memory the host would wait for all that is queued.
  const auto place = at::TensorOptions(at::kLong).pinned_memory(device.device.is_cuda());
  const at::Tensor tokens_bt = at::empty({options.batch, options.seq_len}, place);
  const at::Tensor targets_bt = at::empty({options.batch, options.seq_len}, place);
  fill(tokens_bt.data_ptr<std::int64_t>(), targets_bt.data_ptr<std::int64_t>());
  const auto there = [&](const at::Tensor& x) { return x.to(device.device, at::kLong, /*non_blocking=*/true); };
  return {there(tokens_bt), there(targets_bt)};
}

constexpr std::int64_t induction_sequences = 8;
constexpr std::int64_t induction_period = 64;  // tokens before they repeat; less where sequences are shorter

HeadValues query_norms(const at::Tensor& q_bthd, const std::vector<double>& k_norm) {
  const at::Tensor norm_bth =
      at::linalg_vector_norm(q_bthd.detach(), 2, at::IntArrayRef{-1}, /*keepdim=*/false, at::kDouble);
  const std::vector<double> q_norm = to_doubles(norm_bth.mean(at::IntArrayRef{0, 1}));
  HeadValues values = {{"q_norm", q_norm}, {"qk_ratio", {}}};
  for (std::size_t head = 0; head < q_norm.size(); ++head)
    values["qk_ratio"].push_back(q_norm[head] / k_norm[head * k_norm.size() / q_norm.size()]);
  return values;
}

at::Tensor repeated_tokens(std::int64_t vocabulary, std::int64_t period) {
  NumpyGenerator generator(0);
  const at::Tensor tokens_bt = at::empty({induction_sequences, period}, at::kLong);
  auto* values = tokens_bt.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < tokens_bt.numel(); ++i)
    values[i] = static_cast<std::int64_t>(generator.integers(static_cast<std::uint64_t>(vocabulary)));
  return at::cat({tokens_bt, tokens_bt}, 1);
}

}  // namespace

Batch training_batch(const TrainOptions& options, const Tokens& tokens, BlockOrder& order, std::int64_t position,
                     const ComputeDevice& device) {
  return filled_batch(options, device, [&](std::int64_t* inputs, std::int64_t* targets) {
    fill_batch(tokens, order, position, options.batch, options.seq_len, inputs, targets);
  });
}

std::vector<Batch> validation_batches(const TrainOptions& options, const Tokens& tokens, const ComputeDevice& device) {
  std::vector<Batch> batches;
  for (std::int64_t i = 0; i < options.validation_batches; ++i)
    batches.push_back(filled_batch(options, device, [&](std::int64_t* inputs, std::int64_t* targets) {
      fill_fixed_batch(tokens, i, options.batch, options.seq_len, inputs, targets);
    }));
  return batches;
}

void HeadMeasurer::observe(const HeadVectors& vectors) {
  const at::NoGradGuard no_gradients;
  HeadValues& values = layers_.emplace_back();
  if (chosen_.has(MetricGroup::norm) || chosen_.has(MetricGroup::outlier) || chosen_.has(MetricGroup::redundancy))
    values.merge(key_statistics(vectors.k_bthd));
  if (chosen_.has(MetricGroup::norm)) values.merge(query_norms(vectors.q_bthd, values.at("k_norm")));
  if (chosen_.has(MetricGroup::rank)) grams_.push_back(key_gram(vectors.k_bthd));
  if (chosen_.has(MetricGroup::attention) || chosen_.has(MetricGroup::pattern))
    values.merge(attention_statistics(vectors.q_rotated_bthd, vectors.k_rotated_bthd, vectors.scores));
  if (chosen_.has("entropy_seed")) values.merge(seed_entropy(vectors.q_bthd, vectors.k_bthd, vectors.scores));
}

std::vector<HeadValues> HeadMeasurer::finish() {
  if (!grams_.empty()) {  // all heads of the model at once: they share the cores
    const HeadValues spectra = spectrum_of_gram(at::cat(grams_).cpu());
    for (const auto& [metric, of_all] : spectra) {
      const auto heads = static_cast<std::ptrdiff_t>(of_all.size() / layers_.size());
      for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
        const auto first = of_all.begin() + static_cast<std::ptrdiff_t>(layer) * heads;
        layers_[layer][metric].assign(first, first + heads);
      }
    }
  }
  for (HeadValues& values : layers_)
    std::erase_if(values, [&](const auto& entry) { return !chosen_.has(entry.first); });
  return std::move(layers_);
}

std::vector<HeadValues> measure_induction(const Decoder& model, std::int64_t longest) {
  const at::NoGradGuard no_gradients;
  const std::int64_t period = std::min(induction_period, longest / 2);
  const at::Tensor tokens = repeated_tokens(model.config.vocabulary, period).to(model.embedding.device());
  std::vector<HeadValues> layers;
  final_hidden(model, tokens, at::kFloat, {.observe = [&](std::int64_t, const HeadVectors& vectors) {
                 layers.push_back(induction_score(vectors.q_rotated_bthd, vectors.k_rotated_bthd, vectors.scores));
               }});
  return layers;
}

Gains gains_of(const Decoder& model) {
  Gains gains;
  if (!model.config.qk_norm) return gains;
  for (const DecoderLayer& layer : model.layers) {
    gains.q.push_back(to_doubles(effective_gain(model, layer.q_gain)));
    gains.k.push_back(to_doubles(effective_gain(model, layer.k_gain)));
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
