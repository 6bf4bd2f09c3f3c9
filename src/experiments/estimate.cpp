#include "experiments/estimate.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include "core/console.h"
#include "ops/attention.h"
#include "ops/device.h"
#include "ops/linear_cross_entropy.h"
#include "plan/memory.h"
#include "train/trainer.h"

namespace headscope {
namespace {

static_assert(autograd_slice_bytes == logits_slice_bytes && written_out_slice_bytes == training_slice_bytes);

StepKind step_on(const Setup& setup, const ComputeDevice& device) {
  return {.element = device.type == at::kFloat ? 4.0 : 2.0,
          .written_out = has_device_updates(setup.model, setup.train, device.device),
          .repeated_keys = setup.model.heads > setup.model.kv_heads &&
                           wants_repeated_keys(setup.model.d_k, device.device, device.type, setup.train.deterministic)};
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
  estimate.memory_mb = process_memory(setup, step_on(setup, device)).total() / (1 << 20);
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
  constexpr double gigabyte = 1e9;
  const double there = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  const ParameterCounts parameters = count_parameters(model);
  if (const double needed = training_state_bytes(parameters); needed > there)
    fail_input(
        "the model has {} parameters: {:.1f} GB to train them, without activations, and the machine has {:.1f}; choose "
        "a smaller model",
        parameters.total, needed / gigabyte, there / gigabyte);
}

}  // namespace headscope
