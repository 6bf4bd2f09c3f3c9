#include "study/estimate.h"

#include <ATen/ATen.h>

#include <chrono>

#include "ops/linear_cross_entropy.h"

namespace headscope {
namespace {

// Bytes of one forward step that wait for the backward pass, for each token: what the operations keep (ops/).
double activation_bytes(const DecoderConfig& c, double element) {
  const auto d = static_cast<double>(c.d_model), ff = static_cast<double>(c.d_ff);
  const auto q = static_cast<double>(c.heads * c.d_k), kv = static_cast<double>(c.kv_heads * c.d_k);
  const double attention = 2 * d + (q + 2 * kv) + (q + kv) + 2 * q;  // input, normed; qkv; turned q and k; output
  const double feed_forward = 2 * d + 3 * ff;                        // input, normed; before and after the activation
  return static_cast<double>(c.layers) * (attention + feed_forward) * element + 4 * d * element;
}

double memory_bytes(const StudyOptions& options, const ComputeDevice& device) {
  const ParameterCounts parameters = count_parameters(options.model);
  const auto total = static_cast<double>(parameters.total), matrices = static_cast<double>(parameters.matrices);
  const double element = device.type == at::kFloat ? 4 : 2;
  const double state = 4 * (2 * total + matrices + 2 * (total - matrices));  // weights, gradients, momentum, moments
  const double casts = device.type == at::kFloat ? 0 : 2 * total;
  const auto tokens = static_cast<double>(options.train.batch * options.train.seq_len);
  const auto vocabulary = static_cast<double>(options.model.vocabulary);
  const double logits = 2 * std::min(tokens * vocabulary * 4, static_cast<double>(logits_slice_bytes)) +
                        4 * vocabulary * static_cast<double>(options.model.d_model);
  const double update = 4 * 4 * matrices;  // gradients of all matrices stacked, and the iterates of Polar Express
  const double program = 300.0 * (1 << 20);
  return program + state + casts + std::max(activation_bytes(options.model, element) * tokens + logits, update);
}

// Multiplications and additions of one token, forward and backward: 6 for every weight, and attention over half the
// sequence.
double flops_per_token(const StudyOptions& options) {
  const ParameterCounts parameters = count_parameters(options.model);
  const auto weights = static_cast<double>(parameters.matrices + parameters.embedding);
  const double attention = static_cast<double>(options.model.layers * options.model.heads * options.model.d_k) *
                           static_cast<double>(options.train.seq_len);
  return 6 * (weights + attention);
}

// The device's rate on the feed-forward product of one batch: the best of some, because other programs may be at work.
double measured_flops(const StudyOptions& options, const ComputeDevice& device) {
  const at::NoGradGuard no_gradients;
  const std::int64_t rows = std::min<std::int64_t>(options.train.batch * options.train.seq_len, 4096);
  const auto place = at::TensorOptions(device.device).dtype(device.type);
  const at::Tensor x = at::rand({rows, options.model.d_model}, place);
  const at::Tensor w = at::rand({options.model.d_model, options.model.d_ff}, place);
  const int products =
      device.device.is_cpu() ? 1 : 16;  // a queue of them, so that a GPU's time to start does not count
  double best = std::numeric_limits<double>::infinity();
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds_since = [](auto start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (int round = 0; round < 3 || seconds_since(begin) < 0.2; ++round) {
    synchronize(device);
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < products; ++i) at::mm(x, w);
    synchronize(device);
    best = std::min(best, seconds_since(start));
  }
  return 2.0 * static_cast<double>(rows * options.model.d_model * options.model.d_ff) * products / best;
}

}  // namespace

StudyEstimate estimate_study(const StudyOptions& options, const ComputeDevice& device) {
  // The share of that rate that whole training steps reach, measured on the presets: norms, softmax and copies take the
  // rest.
  const double reached = device.device.is_cpu() ? 0.45 : 0.4;
  StudyEstimate estimate;
  estimate.parameters = count_parameters(options.model);
  estimate.runs = static_cast<std::int64_t>(seeds_of(options).size() * conditions_of(options).size());
  estimate.steps = options.train.steps();
  estimate.tokens = estimate.steps * options.train.tokens_per_step();
  const std::int64_t forward_steps = estimate.steps * options.train.accumulation;
  estimate.probes = 1 + (forward_steps + options.train.probe_every - 1) / options.train.probe_every;
  estimate.memory_mb = memory_bytes(options, device) / (1 << 20);
  // A forward pass is a third of a step; a probe is one for each validation batch.
  const double probe_tokens = static_cast<double>(estimate.probes * options.train.validation_batches *
                                                  options.train.batch * options.train.seq_len) /
                              3;
  estimate.seconds = static_cast<double>(estimate.runs) * (static_cast<double>(estimate.tokens) + probe_tokens) *
                     flops_per_token(options) / (reached * measured_flops(options, device));
  return estimate;
}

}  // namespace headscope
