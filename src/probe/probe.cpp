#include "probe/probe.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "core/random.h"
#include "probe/attention_statistics.h"
#include "probe/key_statistics.h"

namespace headscope {
namespace {

// In memory of the host; fill(inputs, targets) writes both.
template <class Fill>
Batch filled_batch(const TrainOptions& options, const ComputeDevice& device, Fill&& fill) {
  // A GPU fetches pinned memory by itself; from other memory the host would wait for all that is queued.
  const auto place = at::TensorOptions(at::kLong).pinned_memory(device.device.is_cuda());
  const auto tokens = [&] { return at::empty({options.batch, options.seq_len}, place); };
  Batch batch{tokens(), tokens()};
  fill(batch.tokens_bt.data_ptr<std::int64_t>(), batch.targets_bt.data_ptr<std::int64_t>());
  return batch;
}

constexpr std::int64_t induction_sequences = 8;
constexpr std::int64_t induction_period = 64;  // tokens before they repeat; less where sequences are shorter

// q_norm over k_norm of the key head.
std::vector<double> norm_ratios(const std::vector<double>& q_norm, const std::vector<double>& k_norm) {
  std::vector<double> ratios;
  for (std::size_t head = 0; head < q_norm.size(); ++head)
    ratios.push_back(q_norm[head] / k_norm[head * k_norm.size() / q_norm.size()]);
  return ratios;
}

// The gains of all layers, [layer, dimension] in float64 on the device of the model.
at::Tensor stacked_gains(const Decoder& model, at::Tensor DecoderLayer::*gain) {
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> gains;
  for (const DecoderLayer& layer : model.layers) gains.push_back(effective_qk_gain(model, layer.*gain));
  return at::stack(gains).to(at::kDouble);
}

// The rows of a matrix in memory.
std::vector<std::vector<double>> rows_of(const at::Tensor& values_ln) {
  std::vector<std::vector<double>> rows;
  const double* first = values_ln.const_data_ptr<double>();
  for (std::int64_t row = 0; row < values_ln.size(0); ++row, first += values_ln.size(1))
    rows.emplace_back(first, first + values_ln.size(1));
  return rows;
}

void merge_layers(std::vector<HeadValues>& layers, std::vector<HeadValues> others) {
  for (std::size_t layer = 0; layer < layers.size(); ++layer) layers[layer].merge(others[layer]);
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

Batch to_device(const Batch& batch, const ComputeDevice& device) {
  const auto there = [&](const at::Tensor& x) { return x.to(device.device, at::kLong, /*non_blocking=*/true); };
  return {there(batch.tokens_bt), there(batch.targets_bt)};
}

std::vector<Batch> validation_batches(const TrainOptions& options, const Corpus& corpus, const ComputeDevice& device) {
  const std::vector<std::int64_t> blocks = fixed_blocks(corpus.validation.size(), options.validation_batches,
                                                        options.batch, options.seq_len, corpus.sampled);
  std::vector<Batch> batches;
  for (std::int64_t i = 0; i < options.validation_batches; ++i) {
    const Batch batch = filled_batch(options, device, [&](std::int64_t* inputs, std::int64_t* targets) {
      const auto first = static_cast<std::size_t>(i * options.batch), count = static_cast<std::size_t>(options.batch);
      fill_blocks(corpus.validation, std::span(blocks).subspan(first, count), options.seq_len, inputs, targets);
    });
    batches.push_back(to_device(batch, device));
  }
  return batches;
}

void HeadMeasurer::observe(const HeadVectors& vectors) {
  const at::NoGradGuard no_gradients;
  Layer& layer = layers_.emplace_back();
  const bool keys =
      chosen_.has(MetricGroup::norm) || chosen_.has(MetricGroup::outlier) || chosen_.has(MetricGroup::redundancy);
  if (keys && chosen_.has(MetricGroup::rank)) {
    PendingKeys both = begin_key_statistics_and_gram(vectors.k_bthd);
    layer.parts.push_back(std::move(both.statistics));
    layer.gram_hdd = both.gram_hdd;
  } else if (keys) {
    layer.parts.push_back(begin_key_statistics(vectors.k_bthd));
  } else if (chosen_.has(MetricGroup::rank)) {
    layer.gram_hdd = key_gram(vectors.k_bthd);
  }
  if (chosen_.has(MetricGroup::norm)) layer.parts.push_back(begin_query_norms(vectors.q_bthd));
  if (chosen_.has(MetricGroup::attention) || chosen_.has(MetricGroup::pattern))
    layer.parts.push_back(begin_attention_statistics(vectors.q_rotated_bthd, vectors.k_rotated_bthd, vectors.scores,
                                                     vectors.log_sum_bht));
  if (chosen_.has("entropy_seed"))
    layer.parts.push_back(begin_seed_entropy(vectors.q_bthd, vectors.k_bthd, vectors.scores));
}

void HeadMeasurer::observe_gains(const Decoder& model) {
  if (!chosen_.has(MetricGroup::gain) || !model.config.qk_norm) return;
  q_gains_ln_ = stacked_gains(model, &DecoderLayer::q_gain);
  k_gains_ln_ = stacked_gains(model, &DecoderLayer::k_gain);
}

// Flat, in the order in which finish() reads them.
std::vector<at::Tensor> HeadMeasurer::on_device() const {
  std::vector<at::Tensor> tensors;
  const auto add = [&](const at::Tensor& tensor) {
    if (tensor.defined() && !tensor.device().is_cpu()) tensors.push_back(tensor.reshape({-1}));
  };
  for (const Layer& layer : layers_) {
    for (const PendingValues& part : layer.parts) add(part.sums);
    add(layer.gram_hdd);
  }
  add(q_gains_ln_);
  add(k_gains_ln_);
  return tensors;
}

void HeadMeasurer::send() {
  const std::vector<at::Tensor> tensors = on_device();
  if (tensors.empty()) return;
  sent_ = at::cat(tensors);
  const at::Device device = sent_.device();
  const c10::impl::VirtualGuardImpl streams(device.type());
  const c10::Stream of_transfer = streams.getStreamFromGlobalPool(device);
  c10::Event measured(device.type());
  measured.record(streams.getStream(device));
  measured.block(of_transfer);
  if (!arrived_.defined() || arrived_.numel() != sent_.numel())
    arrived_ = at::empty(sent_.sizes(), at::TensorOptions().dtype(at::kDouble).pinned_memory(true));
  const c10::StreamGuard on_stream(of_transfer);
  arrived_.copy_(sent_, /*non_blocking=*/true);
  arrival_.emplace(device.type());
  arrival_->record(of_transfer);
}

HeadMeasurements HeadMeasurer::finish() {
  if (!arrival_) send();
  if (arrival_) arrival_->synchronize();
  std::int64_t next = 0;
  const auto here = [&](const at::Tensor& tensor) {  // in the order of on_device
    if (tensor.device().is_cpu()) return tensor.contiguous();
    const at::Tensor part = arrived_.narrow(0, next, tensor.numel()).view(tensor.sizes());
    next += tensor.numel();
    return part;
  };
  HeadMeasurements result;
  std::vector<at::Tensor> grams;
  for (const Layer& layer : layers_) {
    HeadValues& values = result.layers.emplace_back();
    for (const PendingValues& part : layer.parts)
      values.merge(part.sums.defined() ? part.values_of(here(part.sums).const_data_ptr<double>())
                                       : HeadValues(part.known));
    if (chosen_.has(MetricGroup::norm)) values["qk_ratio"] = norm_ratios(values.at("q_norm"), values.at("k_norm"));
    if (layer.gram_hdd.defined()) grams.push_back(here(layer.gram_hdd));
  }
  if (q_gains_ln_.defined()) result.gains = {rows_of(here(q_gains_ln_)), rows_of(here(k_gains_ln_))};
  arrival_.reset();
  sent_.reset();
  if (!grams.empty()) {  // all heads of the model at once: they share the cores
    const HeadValues spectra = spectrum_of_gram(at::cat(grams));
    for (const auto& [metric, of_all] : spectra) {
      const auto heads = static_cast<std::ptrdiff_t>(of_all.size() / result.layers.size());
      for (std::size_t layer = 0; layer < result.layers.size(); ++layer) {
        const auto first = of_all.begin() + static_cast<std::ptrdiff_t>(layer) * heads;
        result.layers[layer][metric].assign(first, first + heads);
      }
    }
  }
  for (HeadValues& values : result.layers)
    std::erase_if(values, [&](const auto& entry) { return !chosen_.has(entry.first); });
  return result;
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

RankErrors measure_rank_errors(const Decoder& model, const at::Tensor& tokens_bt, const MetricSelection& chosen) {
  const at::NoGradGuard no_gradients;
  RankProbe ranks(chosen, gains_of(model), /*with_errors=*/true);
  observe_heads(model, tokens_bt, at::kFloat, model.config.layers - 1,
                [&](std::int64_t, const HeadVectors& vectors) { ranks.observe(vectors); });
  return ranks.errors().value_or(RankErrors());
}

Gains gains_of(const Decoder& model) {
  if (!model.config.qk_norm) return {};
  const at::Tensor q = stacked_gains(model, &DecoderLayer::q_gain), k = stacked_gains(model, &DecoderLayer::k_gain);
  const at::Tensor both = at::cat({q.flatten(), k.flatten()}).cpu();  // one transfer
  return {rows_of(both.narrow(0, 0, q.numel()).view_as(q)), rows_of(both.narrow(0, q.numel(), k.numel()).view_as(k))};
}

std::vector<double> batch_losses(const Decoder& model, const std::vector<Batch>& batches, at::ScalarType type,
                                 const EditKeys& edit, const Observe& observe) {
  const at::NoGradGuard no_gradients;
  std::vector<double> losses;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const Hooks hooks{.observe = i == 0 ? observe : Observe(), .edit_keys = edit};
    losses.push_back(next_token_loss(model, batches[i].tokens_bt, batches[i].targets_bt, type, hooks).item<double>());
  }
  return losses;
}

double mean_loss(const std::vector<double>& losses) {
  double sum = 0;
  for (const double loss : losses) sum += loss;
  return sum / static_cast<double>(losses.size());
}

double validation_loss(const Decoder& model, const std::vector<Batch>& batches, at::ScalarType type,
                       const EditKeys& edit, const Observe& observe) {
  return mean_loss(batch_losses(model, batches, type, edit, observe));
}

ProbeResult probe_model(const Decoder& model, const std::vector<Batch>& batches, at::ScalarType type,
                        const MetricSelection& chosen, bool with_loss, bool with_errors) {
  const at::NoGradGuard no_gradients;
  const bool needs_gains = chosen.has(MetricGroup::gain) || chosen.has(MetricGroup::other_rank);
  const Gains gains = needs_gains ? gains_of(model) : Gains();
  HeadMeasurer heads(chosen);
  RankProbe ranks(chosen, gains, with_errors);
  const Observe measure = [&, of_heads = heads.hooks().observe](std::int64_t layer, const HeadVectors& vectors) {
    of_heads(layer, vectors);
    ranks.observe(vectors);
  };
  ProbeResult result;
  // Where training computes in float32, too, one pass over the first batch gives both heads and loss.
  const bool one_pass = with_loss && type == at::kFloat;
  if (!one_pass) final_hidden(model, batches.front().tokens_bt, at::kFloat, {.observe = measure});
  if (with_loss) {
    result.losses = batch_losses(model, batches, type, {}, one_pass ? measure : Observe());
    result.val_loss = mean_loss(result.losses);
  }
  result.layers = heads.finish().layers;
  ranks.add_to(result.layers);
  result.rank_errors = ranks.errors();
  if (chosen.has(MetricGroup::induction))
    merge_layers(result.layers, measure_induction(model, batches.front().tokens_bt.size(1)));
  if (chosen.has(MetricGroup::gain)) result.gains = gains;
  return result;
}

}  // namespace headscope
