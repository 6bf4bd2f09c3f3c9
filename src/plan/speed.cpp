#include "plan/speed.h"

#include <algorithm>
#include <array>

#include "core/text.h"
#include "plan/memory.h"

namespace headscope {
namespace {

// docs/gpu.md, 2026-11-18, one H200: whole updates, and the optimizers' part of them.
struct Measured {
  const char* preset;
  std::int64_t batch, accumulation;
  double tokens_per_s, optimizer_seconds;
};
constexpr std::array<Measured, 2> measured_presets = {{{"88m", 8, 1, 554'735, 2.0e-3}, {"1.5b", 16, 2, 52'538, 81e-3}}};

// docs/gpu.md, 88m, 8 x 2048 tokens: tokens/s with train.deterministic; train.recompute takes 25 % more time (before
// keys were repeated for every head). Both are of whole updates. The optimizers do the same work in both, so forward
// and backward pass take all of the further time.
constexpr double deterministic_tokens_per_s = 451'014, recompute_time = 1.25;

// docs/gpu.md: a probe of 88m with its validation loss, in the shape of the preset; a mean of eight.
constexpr double probe_of_88m = 0.17;

// Of the peak rate, what whole updates reach: 88m 0.39 and 1.5b 0.55 of an H200's (docs/gpu.md).
constexpr double reached_share = 0.4;

// docs/scale.md: tokens/s of one rank with NCCL against one process, in the slowest of nine rounds. A sample, no bound.
constexpr double one_rank_with_nccl = 0.983;
constexpr std::int64_t accumulation_with_nccl = 4;

// Of an update that takes so many times as long, what its forward steps take.
double of_forward_steps(double update) {
  const Measured& one = measured_presets.front();
  const double seconds = static_cast<double>(one.batch * preset_setup(one.preset).train.seq_len) / one.tokens_per_s;
  return (update * seconds - one.optimizer_seconds) / (seconds - one.optimizer_seconds);
}

std::string slowdown_text(const TrainOptions& train) {
  const bool both = train.deterministic && train.recompute;
  if (!train.deterministic && !train.recompute) return "";
  return fmt::format("; {}: a forward step takes {:.2f} times as long, as {} on 88m (docs/gpu.md)",
                     both                  ? "train.deterministic and train.recompute"
                     : train.deterministic ? "train.deterministic"
                                           : "train.recompute",
                     slowdown(train), both ? "the product of what each took" : "it took");
}

bool same_shape(const DecoderConfig& a, const DecoderConfig& b) {
  return a.vocabulary == b.vocabulary && a.d_model == b.d_model && a.layers == b.layers && a.heads == b.heads &&
         a.kv_heads == b.kv_heads && a.d_k == b.d_k && a.d_ff == b.d_ff;
}

const Measured* measured_as(const Setup& setup, const Cluster& cluster) {
  if (!cluster.is_measured() || !step_on_gpu(setup).written_out) return nullptr;
  for (const Measured& one : measured_presets) {
    const Setup preset = preset_setup(one.preset);
    if (same_shape(preset.model, setup.model) && preset.train.seq_len == setup.train.seq_len) return &one;
  }
  return nullptr;
}

// No larger probe than that which was timed.
std::optional<double> probe_seconds(const Setup& setup) {
  const Setup timed = preset_setup("88m");
  const TrainOptions &train = setup.train, &of = timed.train;
  if (!same_shape(timed.model, setup.model) || train.seq_len != of.seq_len || train.batch > of.batch ||
      train.validation_batches > of.validation_batches)
    return std::nullopt;
  return probe_of_88m;
}

GpuSpeed from_measured(const Measured& one, const Setup& setup) {
  const auto tokens = static_cast<double>(one.batch * setup.train.seq_len * one.accumulation);
  std::string text =
      fmt::format("one H200 trains {} at {} tokens/s, {} x {} a forward step (docs/gpu.md)", one.preset,
                  with_separators(static_cast<std::int64_t>(one.tokens_per_s)), one.batch, setup.train.seq_len);
  if (setup.train.batch < one.batch)
    text += fmt::format("; {} x {} was not timed: the plan takes the same time for a token, which is too little",
                        setup.train.batch, setup.train.seq_len);
  text += fmt::format("; {:.3g} ms of each update are the optimizers'", 1000 * one.optimizer_seconds);
  return {slowdown(setup.train) * (tokens / one.tokens_per_s - one.optimizer_seconds) / tokens, one.optimizer_seconds,
          "measured", text + slowdown_text(setup.train)};
}

GpuSpeed speed_of_updates(const Setup& setup, const Cluster& cluster, const UpdateShares& whole) {
  const auto tokens = static_cast<double>(setup.train.tokens_per_step());
  const double per_token = training_flops_per_token(setup.model, setup.train.seq_len);
  if (cluster.tokens_per_s) {
    // Of an update, the optimizers take the share of their operations.
    const double update = tokens / *cluster.tokens_per_s;
    const double optimizer = update * whole.polar_flops / (per_token * tokens + whole.polar_flops);
    return {
        (update - optimizer) / tokens, optimizer, "file",
        fmt::format("one GPU trains this model at {} tokens/s in updates of {} tokens ({}); with others measure again",
                    amount_text(*cluster.tokens_per_s), with_separators(setup.train.tokens_per_step()), cluster.file)};
  }
  if (const Measured* one = measured_as(setup, cluster)) return from_measured(*one, setup);
  const double rate = reached_share * cluster.peak_tflops * 1e12;
  return {slowdown(setup.train) * per_token / rate, whole.polar_flops / rate, "assumed",
          fmt::format("one GPU reaches {:.0f} % of {} TFLOP/s{} (88m reached 39, 1.5b 55){}", 100 * reached_share,
                      amount_text(cluster.peak_tflops),
                      cluster.gives("peak_tflops") || cluster.file.empty()
                          ? ""
                          : ", an H100's peak, as the file gives neither tokens_per_s nor peak_tflops",
                      slowdown_text(setup.train)),
          true};
}

}  // namespace

double step_flops(const Setup& setup) {
  return training_flops_per_token(setup.model, setup.train.seq_len) *
         static_cast<double>(setup.train.batch * setup.train.seq_len);
}

TimedStep smallest_timed_step(const Setup& setup) {
  const auto step_of = [&](const Measured& one) {
    Setup timed = preset_setup(one.preset);
    timed.train.batch = one.batch;
    return TimedStep{one.preset, same_shape(timed.model, setup.model), one.batch, timed.train.seq_len,
                     step_flops(timed)};
  };
  for (const Measured& one : measured_presets)
    if (TimedStep step = step_of(one); step.is_of_this_model) return step;
  return step_of(measured_presets.front());  // 88m has less of it than 1.5b
}

double most_seconds_of_ranks(std::int64_t parameters, std::int64_t steps_of_a_rank) {
  const Measured& one = measured_presets.front();
  const Setup of_one = preset_setup(one.preset);
  const double step = static_cast<double>(one.batch * of_one.train.seq_len) / one.tokens_per_s - one.optimizer_seconds;
  const double update = static_cast<double>(accumulation_with_nccl) * step + one.optimizer_seconds;
  const double updates =
      std::max(1.0, static_cast<double>(steps_of_a_rank) / static_cast<double>(accumulation_with_nccl));
  return (1 / one_rank_with_nccl - 1) * update * updates * static_cast<double>(parameters) /
         static_cast<double>(count_parameters(of_one.model).total);
}

double slowdown(const TrainOptions& train) {
  const double deterministic = measured_presets.front().tokens_per_s / deterministic_tokens_per_s;
  return (train.deterministic ? of_forward_steps(deterministic) : 1) *
         (train.recompute ? of_forward_steps(recompute_time) : 1);
}

GpuSpeed gpu_speed(const Setup& setup, const Cluster& cluster, const UpdateShares& whole) {
  GpuSpeed speed = speed_of_updates(setup, cluster, whole);
  speed.probe_seconds = probe_seconds(setup);
  return speed;
}

}  // namespace headscope
