#include "experiments/estimate.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include "core/console.h"
#include "ops/attention.h"
#include "ops/device.h"
#include "ops/linear_cross_entropy.h"
#include "train/trainer.h"

namespace headscope {
namespace {

// Bytes of one forward step that wait for the backward pass, for each token: what autograd's operations keep (ops/), or
// the pass that is written out (model/training_pass.h).
double activation_bytes(const DecoderConfig& c, double element, bool written_out, bool recompute, bool repeated) {
  const auto d = static_cast<double>(c.d_model), ff = static_cast<double>(c.d_ff);
  const auto q = static_cast<double>(c.heads * c.d_k), kv = static_cast<double>(c.kv_heads * c.d_k);
  const double attention = 2 * d + (q + 2 * kv) + (q + kv) + 2 * q;  // input, normed; qkv; turned q and k; output
  const double feed_forward = 2 * d + 3 * ff;                        // input, normed; before and after the activation
  if (!written_out) return static_cast<double>(c.layers) * (attention + feed_forward) * element + 4 * d * element;
  // Keys and values for every query head, beside the packed ones.
  const double layer = attention - q + feed_forward - 2 * ff + (repeated ? 2 * q - kv : 0),
               kept = static_cast<double>(c.layers) * (recompute ? d : layer);
  return (kept + layer + 2 * ff + 4 * d) * element;  // and one layer at work
}

// Weights, gradients, momentum of the matrices, two moments of the rest.
double state_bytes(const ParameterCounts& parameters) {
  const auto total = static_cast<double>(parameters.total), matrices = static_cast<double>(parameters.matrices);
  return 4 * (2 * total + matrices + 2 * (total - matrices));
}

double memory_bytes(const Setup& setup, const ComputeDevice& device) {
  const ParameterCounts parameters = count_parameters(setup.model);
  const auto total = static_cast<double>(parameters.total), matrices = static_cast<double>(parameters.matrices);
  const double element = device.type == at::kFloat ? 4 : 2;
  const double casts = device.type == at::kFloat ? 0 : 2 * total;
  const auto tokens = static_cast<double>(setup.train.batch * setup.train.seq_len);
  const auto vocabulary = static_cast<double>(setup.model.vocabulary);
  const bool written_out = has_device_updates(setup.model, setup.train, device.device);
  const bool repeated = setup.model.heads > setup.model.kv_heads &&
                        wants_repeated_keys(setup.model.d_k, device.device, device.type, setup.train.deterministic);
  const double slice = written_out ? std::min(tokens * vocabulary * element, static_cast<double>(training_slice_bytes))
                                   : 2 * std::min(tokens * vocabulary * 4, static_cast<double>(logits_slice_bytes));
  const double logits = slice + (written_out ? 0 : 4 * vocabulary * static_cast<double>(setup.model.d_model));
  const double update = 4 * 4 * matrices;  // gradients of all matrices stacked, and the iterates of Polar Express
  const double program = 300.0 * (1 << 20);
  return program + state_bytes(parameters) + casts +
         std::max(
             activation_bytes(setup.model, element, written_out, setup.train.recompute, repeated) * tokens + logits,
             update);
}

// The device's rate on the feed-forward product of one batch: the best of some, because other programs may be at work.
double measured_flops(const Setup& setup, const ComputeDevice& device) {
  const at::NoGradGuard no_gradients;
  // No wider than the largest preset: the rate does not rise any more, and a model that fits no memory has an answer.
  const std::int64_t rows = std::min<std::int64_t>(setup.train.batch * setup.train.seq_len, 4096);
  const std::int64_t width = std::min<std::int64_t>(setup.model.d_model, 2048);
  const std::int64_t inner_width = std::min<std::int64_t>(setup.model.d_ff, 8192);
  const auto place = at::TensorOptions(device.device).dtype(device.type);
  const at::Tensor x = at::rand({rows, width}, place);
  const at::Tensor w = at::rand({width, inner_width}, place);
  const int products =
      device.device.is_cpu() ? 1 : 16;  // a queue of them, so that a GPU's time to start does not count
  double best = std::numeric_limits<double>::infinity();
  const auto begin = Clock::now();
  for (int round = 0; seconds_since(begin) < (round < 3 ? 2 : 0.2); ++round) {
    synchronize(device);
    const auto start = Clock::now();
    for (int i = 0; i < products; ++i) at::mm(x, w);
    synchronize(device);
    best = std::min(best, seconds_since(start));
  }
  return 2.0 * static_cast<double>(rows * width * inner_width) * products / best;
}

}  // namespace

TrainEstimate estimate_training(const Setup& setup, const ComputeDevice& device) {
  // The share of that rate that whole training steps reach, measured on the presets: norms, softmax and copies take the
  // rest. On an H200 88m reaches 0.54 of it, 1.5b 0.77.
  const double reached = device.device.is_cpu() ? 0.45 : 0.55;
  const TrainOptions& train = setup.train;
  TrainEstimate estimate;
  estimate.device = device.description;
  estimate.threads = device.threads;
  estimate.parameters = count_parameters(setup.model);
  estimate.steps = train.steps();
  estimate.tokens = estimate.steps * train.tokens_per_step();
  const std::int64_t forward_steps = estimate.steps * train.accumulation;
  estimate.probes = 1 + (forward_steps + train.probe_every - 1) / train.probe_every;
  estimate.memory_mb = memory_bytes(setup, device) / (1 << 20);
  if (device.device.is_cuda()) estimate.gpu_memory_mb = device_memory_mb(device);
  // A forward pass is a third of a step; a probe is one for each validation batch.
  const double probe_tokens = static_cast<double>(estimate.probes) *
                              static_cast<double>(train.validation_batches * train.batch * train.seq_len) / 3;
  estimate.seconds = (static_cast<double>(estimate.tokens) + probe_tokens) *
                     training_flops_per_token(setup.model, train.seq_len) / (reached * measured_flops(setup, device));
  return estimate;
}

TrainEstimate estimate_run(const Setup& setup) {
  const ComputeDevice device = choose_device(setup.device, setup.threads);
  check_device(setup.model, setup.train, device.device);
  check_corpus_for(setup);
  return estimate_training(setup, device);
}

void check_memory(const DecoderConfig& model, const ComputeDevice& device) {
  if (!device.device.is_cpu()) return;
  constexpr double gigabyte = 1 << 30;
  const double there = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  const ParameterCounts parameters = count_parameters(model);
  if (const double needed = state_bytes(parameters); needed > there)
    fail_input(
        "the model has {} parameters: {:.1f} GB to train them, without activations, and the machine has {:.1f}; choose "
        "a smaller model",
        parameters.total, needed / gigabyte, there / gigabyte);
}

}  // namespace headscope
