#include "model/rope.h"

#include <cmath>
#include <numbers>

#include "ops/attention.h"

namespace headscope {
namespace {

// Unscaled.
at::Tensor plain_frequencies(std::int64_t dims, double base, bool float32) {
  if (!float32) return rotary_frequencies(dims, base);
  return at::pow(base, at::arange(0, dims, 2, at::kFloat) / static_cast<double>(dims)).reciprocal();
}

at::Tensor llama3_frequencies(const at::Tensor& f, const RopeScaling& scaling) {
  const at::Tensor periods = f * (scaling.original_length / (2 * std::numbers::pi));  // in original_length tokens
  const at::Tensor kept =
      ((periods - scaling.low_frequency) / (scaling.high_frequency - scaling.low_frequency)).clamp(0, 1);
  return (1 - kept) * f / scaling.factor + kept * f;
}

// The dimension, counted in pairs, that turns `times` times in original_length tokens.
double dimension_that_turns(double times, std::int64_t dims, const Rope& rope) {
  return static_cast<double>(dims) * std::log(rope.scaling.original_length / (times * 2 * std::numbers::pi)) /
         (2 * std::log(rope.base));
}

at::Tensor yarn_frequencies(const at::Tensor& f, std::int64_t dims, const Rope& rope) {
  const RopeScaling& scaling = rope.scaling;
  double low = dimension_that_turns(scaling.beta_fast, dims, rope);
  double high = dimension_that_turns(scaling.beta_slow, dims, rope);
  if (scaling.whole_dimensions) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, static_cast<double>(dims - 1));
  if (low == high) high += 0.001;  // as the public library avoids 0/0
  const at::Tensor scaled = ((at::arange(f.size(0), f.scalar_type()) - low) / (high - low)).clamp(0, 1);
  return (1 - scaled) * f + scaled * f / scaling.factor;
}

}  // namespace

std::int64_t frequency_set(const DecoderConfig& config, const Rope& rope, std::int64_t length) {
  if (rope.scaling.kind == RopeScalingKind::dynamic) return length > config.longest ? length : 0;
  if (rope.scaling.kind == RopeScalingKind::longrope)
    return static_cast<double>(length) > rope.scaling.original_length ? 1 : 0;
  return 0;
}

at::Tensor rope_frequencies(const DecoderConfig& config, const Rope& rope, std::int64_t length) {
  const RopeScaling& scaling = rope.scaling;
  const std::int64_t dims = rope.dims == 0 ? config.d_k : rope.dims;
  const std::int64_t set = frequency_set(config, rope, length);
  double base = rope.base;
  if (scaling.kind == RopeScalingKind::dynamic && set != 0) {
    const double n = static_cast<double>(dims),
                 share = static_cast<double>(length) / static_cast<double>(config.longest);
    base *= std::pow(scaling.factor * share - (scaling.factor - 1), n / (n - 2));
  }
  const at::Tensor f = plain_frequencies(dims, base, rope.float32_angles);
  switch (scaling.kind) {
    case RopeScalingKind::linear:
      return f / scaling.factor;
    case RopeScalingKind::llama3:
      return llama3_frequencies(f, scaling);
    case RopeScalingKind::yarn:
      return yarn_frequencies(f, dims, rope);
    case RopeScalingKind::longrope:
      return f / at::tensor(set == 0 ? scaling.short_factors : scaling.long_factors, f.scalar_type());
    case RopeScalingKind::none:
    case RopeScalingKind::dynamic:
      break;
  }
  return f;
}

}  // namespace headscope
