// Quantised weights: blocks of 32 or 256 values, each a small integer with scales that the block shares. These are the
// types of GGUF files; the layouts are those of the ggml library.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/tensor.h"

namespace headscope {

// Converts whole blocks of a quantised type to float32; out.size() is values_per_block times the number of blocks. A
// scale has 11 bits, a value and its scale's factor at most 13: products are exact in float32, and a value is rounded
// once, where a minimum is added. The result is therefore the same on every machine.
void dequantise(TensorType type, std::span<const std::byte> blocks, std::span<float> out);

// The value of 16 bits of IEEE half precision; exact.
inline float half_to_float(std::uint16_t half) {
  // Sign, exponent and fraction move to their places. The exponent's offset grows by 127 - 15 = 112; infinities and NaN
  // have the largest exponent, which grows by as much again.
  const std::uint32_t exponent = half & 0x7c00U, rest = (half & 0x7fffU) << 13;
  const std::uint32_t usual = rest + (exponent == 0x7c00U ? 224U << 23 : 112U << 23);
  // Below 2^-14 the fraction has no leading one: put one there and subtract it.
  const float tiny = std::bit_cast<float>(rest + (113U << 23)) - std::bit_cast<float>(113U << 23);
  // All bits where the exponent is 0. A comparison here would become a jump, which no vector instruction can do.
  const std::uint32_t is_tiny = 0U - ((exponent - 1U) >> 31);
  return std::bit_cast<float>((half & 0x8000U) << 16 | (std::bit_cast<std::uint32_t>(tiny) & is_tiny) |
                              (usual & ~is_tiny));
}

}  // namespace headscope
