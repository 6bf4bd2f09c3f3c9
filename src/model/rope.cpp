#include "model/rope.h"

#include <cmath>
#include <numbers>

#include "ops/attention.h"

namespace headscope {
namespace {

// What follows is computed step by step as the public library does it: a rounding that differs by one bit in a
// frequency of float32 turns a vector at position 8192 by 5e-4 more or less.

// base^(2i/dims) of each pair i, whose reciprocals are the unscaled frequencies.
template <class Base>
at::Tensor powers(std::int64_t dims, const Base& base, at::ScalarType type) {
  return at::pow(base, at::arange(0, dims, 2, type) / static_cast<double>(dims));
}

at::Tensor dynamic_base(std::int64_t length, std::int64_t longest, std::int64_t dims, const Rope& rope,
                        at::ScalarType type) {
  const double factor = rope.scaling.factor, n = static_cast<double>(dims);
  const at::Tensor growth =
      at::scalar_tensor(length, at::TensorOptions(type)) * factor / static_cast<double>(longest) - (factor - 1);
  return growth.pow(n / (n - 2)) * rope.base;
}

at::Tensor llama3_frequencies(const at::Tensor& f, const RopeScaling& scaling) {
  const double low = scaling.low_frequency, high = scaling.high_frequency;
  const at::Tensor periods = f.reciprocal() * (2 * std::numbers::pi);
  const at::Tensor kept = (periods.reciprocal() * scaling.original_length - low) / (high - low);
  const at::Tensor between = (1 - kept) * f / scaling.factor + kept * f;
  return at::where(periods > scaling.original_length / low, f / scaling.factor,
                   at::where(periods < scaling.original_length / high, f, between));
}

// The dimension, counted in pairs, that turns `times` times in original_length tokens.
double dimension_that_turns(double times, std::int64_t dims, const Rope& rope) {
  return static_cast<double>(dims) * std::log(rope.scaling.original_length / (times * 2 * std::numbers::pi)) /
         (2 * std::log(rope.base));
}

at::Tensor yarn_frequencies(const at::Tensor& powers, std::int64_t dims, const Rope& rope) {
  const RopeScaling& scaling = rope.scaling;
  double low = dimension_that_turns(scaling.beta_fast, dims, rope);
  double high = dimension_that_turns(scaling.beta_slow, dims, rope);
  if (scaling.whole_dimensions) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, static_cast<double>(dims - 1));
  if (low == high) high += 0.001;  // as the public library avoids 0/0
  const at::Tensor scaled = ((at::arange(powers.size(0), powers.scalar_type()) - low) / (high - low)).clamp(0, 1);
  const at::Tensor kept = 1 - scaled;
  return (scaling.factor * powers).reciprocal() * (1 - kept) + powers.reciprocal() * kept;
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
  const at::ScalarType type = rope.float32_angles ? at::kFloat : at::kDouble;
  if (scaling.kind == RopeScalingKind::none && !rope.float32_angles) return rotary_frequencies(dims, rope.base);
  const at::Tensor p = powers(dims, rope.base, type);
  switch (scaling.kind) {
    case RopeScalingKind::linear:
      return p.reciprocal() / scaling.factor;
    case RopeScalingKind::llama3:
      return llama3_frequencies(p.reciprocal(), scaling);
    case RopeScalingKind::yarn:
      return yarn_frequencies(p, dims, rope);
    case RopeScalingKind::longrope:
      return (at::tensor(set == 0 ? scaling.short_factors : scaling.long_factors, type) * p).reciprocal();
    case RopeScalingKind::dynamic:
      if (set != 0) return powers(dims, dynamic_base(length, config.longest, dims, rope, type), type).reciprocal();
      break;
    case RopeScalingKind::none:
      break;
  }
  return p.reciprocal();
}

}  // namespace headscope
