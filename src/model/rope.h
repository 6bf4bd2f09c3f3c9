// The frequencies of rotary position embedding, as a model's configuration scales them.
#pragma once

#include <ATen/ATen.h>

#include "settings/decoder_config.h"

namespace headscope {

// The frequency of each pair for sequences of `length` tokens, float64, or float32 with float32_angles. Unscaled, pair
// i of n dimensions that turn has f = base^(-2i/n). With s = factor and L = original_length:
//   linear    f / s
//   dynamic   base·(s·length/longest - (s - 1))^(n/(n-2)) instead of base, where length exceeds config.longest
//   llama3    f where the period 2π/f is below L/high_frequency, f/s where it is above L/low_frequency, and between the
//             two (1 - m)·f/s + m·f with m = (L·f/2π - low_frequency)/(high_frequency - low_frequency)
//   yarn      (1 - m)·f + m·f/s with m from 0 to 1, linear in i between the dimensions that turn beta_fast and
//   beta_slow
//             times in L tokens (arXiv 2309.00071)
//   longrope  f / short_factors[i], or f / long_factors[i] where length exceeds L (arXiv 2402.13753)
at::Tensor rope_frequencies(const DecoderConfig& config, const Rope& rope, std::int64_t length);

// Two lengths with the same number have the same frequencies.
std::int64_t frequency_set(const DecoderConfig& config, const Rope& rope, std::int64_t length);

}  // namespace headscope
