#include "plan/speed.h"

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

// Of the peak rate, what whole updates reach: 88m 0.39 and 1.5b 0.55 of an H200's (docs/gpu.md).
constexpr double reached_share = 0.4;

bool same_shape(const DecoderConfig& a, const DecoderConfig& b) {
  return a.vocabulary == b.vocabulary && a.d_model == b.d_model && a.layers == b.layers && a.heads == b.heads &&
         a.kv_heads == b.kv_heads && a.d_k == b.d_k && a.d_ff == b.d_ff;
}

const Measured* measured_as(const Setup& setup, const Cluster& cluster) {
  if (!cluster.is_measured() || !step_on_gpu(setup).written_out) return nullptr;
  if (setup.train.deterministic || setup.train.recompute) return nullptr;
  for (const Measured& one : measured_presets) {
    const Setup preset = preset_setup(one.preset);
    if (same_shape(preset.model, setup.model) && preset.train.seq_len == setup.train.seq_len) return &one;
  }
  return nullptr;
}

GpuSpeed from_measured(const Measured& one, const Setup& setup) {
  const auto tokens = static_cast<double>(one.batch * setup.train.seq_len * one.accumulation);
  std::string text =
      fmt::format("one H200 trains {} at {} tokens/s, {} x {} a forward step (docs/gpu.md)", one.preset,
                  with_separators(static_cast<std::int64_t>(one.tokens_per_s)), one.batch, setup.train.seq_len);
  if (setup.train.batch < one.batch)
    text += fmt::format("; {} x {} was not timed and is slower", setup.train.batch, setup.train.seq_len);
  return {(tokens / one.tokens_per_s - one.optimizer_seconds) / tokens, one.optimizer_seconds, "measured",
          std::move(text)};
}

}  // namespace

GpuSpeed gpu_speed(const Setup& setup, const Cluster& cluster, const UpdateShares& whole) {
  const auto tokens = static_cast<double>(setup.train.tokens_per_step());
  const double per_token = training_flops_per_token(setup.model, setup.train.seq_len);
  if (cluster.tokens_per_s) {
    // Of an update, the optimizers take the share of their operations.
    const double update = tokens / *cluster.tokens_per_s;
    const double optimizer = update * whole.polar_flops / (per_token * tokens + whole.polar_flops);
    return {(update - optimizer) / tokens, optimizer, "file",
            fmt::format("one GPU trains this model at {} tokens/s ({})", *cluster.tokens_per_s, cluster.file)};
  }
  if (const Measured* one = measured_as(setup, cluster)) return from_measured(*one, setup);
  const double rate = reached_share * cluster.peak_tflops * 1e12;
  return {per_token / rate, whole.polar_flops / rate, "assumed",
          fmt::format("one GPU reaches {:.0f} % of {} TFLOP/s (88m reached 39, 1.5b 55){}", 100 * reached_share,
                      cluster.peak_tflops,
                      setup.train.deterministic || setup.train.recompute
                          ? "; train.deterministic and train.recompute each take about a fifth of that"
                          : ""),
          true};
}

}  // namespace headscope
