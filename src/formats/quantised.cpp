#include "formats/quantised.h"

#include <cstdint>
#include <cstring>

#include "core/error.h"

namespace headscope {
namespace {

float half_at(const std::uint8_t* bytes) {
  std::uint16_t half;
  std::memcpy(&half, bytes, sizeof half);
  return half_to_float(half);
}

// Blocks of 32 values with one scale d, and perhaps a minimum m. Byte i of 16 holds the values i (its low four bits)
// and i + 16.

// x = d · q, q of 8 bits with sign.
void q8_0(const std::uint8_t* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
}

// x = d · (q - 8)
void q4_0(const std::uint8_t* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>((block[2 + i] & 15) - 8);
    out[i + 16] = d * static_cast<float>((block[2 + i] >> 4) - 8);
  }
}

// x = d · q + m
void q4_1(const std::uint8_t* block, float* out) {
  const float d = half_at(block), m = half_at(block + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(block[4 + i] & 15) + m;
    out[i + 16] = d * static_cast<float>(block[4 + i] >> 4) + m;
  }
}

// The fifth bits of 32 values are one 32-bit number, the first value's the lowest.
// x = d · (q - 16)
void q5_0(const std::uint8_t* block, float* out) {
  const float d = half_at(block);
  std::uint32_t high;
  std::memcpy(&high, block + 2, sizeof high);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(static_cast<int>((block[6 + i] & 15) | (high >> i & 1) << 4) - 16);
    out[i + 16] = d * static_cast<float>(static_cast<int>((block[6 + i] >> 4) | (high >> (i + 16) & 1) << 4) - 16);
  }
}

// x = d · q + m
void q5_1(const std::uint8_t* block, float* out) {
  const float d = half_at(block), m = half_at(block + 2);
  std::uint32_t high;
  std::memcpy(&high, block + 4, sizeof high);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(static_cast<int>((block[8 + i] & 15) | (high >> i & 1) << 4)) + m;
    out[i + 16] = d * static_cast<float>(static_cast<int>((block[8 + i] >> 4) | (high >> (i + 16) & 1) << 4)) + m;
  }
}

// Blocks of 256 values ("K"): groups of 16 or 32 values, whose scales are small integers times the block's d.

// Scale and minimum of eight groups, six bits each, in twelve bytes: the first four bytes hold the scales 0 to 3 and
// the high two bits of the scales 4 to 7, the next four the minima likewise, the last four the low four bits of the
// scales 4 to 7 and of their minima.
struct ScaleAndMinimum {
  int scale, minimum;
};
ScaleAndMinimum scale_and_minimum(const std::uint8_t* packed, int group) {
  if (group < 4) return {packed[group] & 63, packed[group + 4] & 63};
  return {(packed[group + 4] & 15) | packed[group - 4] >> 6 << 4, packed[group + 4] >> 4 | packed[group] >> 6 << 4};
}

// x = d · scale · q - dmin · minimum, q of 4 bits. 32 bytes hold two groups: low bits, then high bits.
void q4_k(const std::uint8_t* block, float* out) {
  const float d = half_at(block), dmin = half_at(block + 2);
  for (int group = 0; group < 8; ++group) {
    const auto [scale, minimum] = scale_and_minimum(block + 4, group);
    const float factor = d * static_cast<float>(scale), offset = dmin * static_cast<float>(minimum);
    const std::uint8_t* low = block + 16 + group / 2 * 32;
    const int shift = group % 2 * 4;
    for (int i = 0; i < 32; ++i) out[32 * group + i] = factor * static_cast<float>(low[i] >> shift & 15) - offset;
  }
}

// The same with a fifth bit: of value i of group g it is bit g of byte i.
void q5_k(const std::uint8_t* block, float* out) {
  const float d = half_at(block), dmin = half_at(block + 2);
  const std::uint8_t* high = block + 16;
  for (int group = 0; group < 8; ++group) {
    const auto [scale, minimum] = scale_and_minimum(block + 4, group);
    const float factor = d * static_cast<float>(scale), offset = dmin * static_cast<float>(minimum);
    const std::uint8_t* low = block + 48 + group / 2 * 32;
    const int shift = group % 2 * 4;
    for (int i = 0; i < 32; ++i) {
      const int q = (low[i] >> shift & 15) | (high[i] >> group & 1) << 4;
      out[32 * group + i] = factor * static_cast<float>(q) - offset;
    }
  }
}

// x = d · scale · (q - 32), q of 6 bits, a scale of 8 bits with sign for 16 values. A half of the block has 64 bytes of
// low bits (64 values' low halves, then the high halves) and 32 bytes with two further bits of four values each.
void q6_k(const std::uint8_t* block, float* out) {
  const float d = half_at(block + 208);
  for (int part = 0; part < 8; ++part) {  // 32 values
    const std::uint8_t* low = block + part / 4 * 64 + part % 2 * 32;
    const std::uint8_t* high = block + 128 + part / 4 * 32;
    const int low_shift = part % 4 / 2 * 4, high_shift = part % 4 * 2;
    for (int half = 0; half < 2; ++half) {
      const float factor = d * static_cast<float>(static_cast<std::int8_t>(block[192 + 2 * part + half]));
      for (int i = 16 * half; i < 16 * half + 16; ++i) {
        const int q = (low[i] >> low_shift & 15) | (high[i] >> high_shift & 3) << 4;
        out[32 * part + i] = factor * static_cast<float>(q - 32);
      }
    }
  }
}

// x = d · scale · q - dmin · minimum, q of 2 bits, scale and minimum of 4 bits in one byte for 16 values. 32 bytes hold
// 128 values: two bits of each byte are 32 values.
void q2_k(const std::uint8_t* block, float* out) {
  const float d = half_at(block + 80), dmin = half_at(block + 82);
  for (int group = 0; group < 16; ++group) {
    const float factor = d * static_cast<float>(block[group] & 15),
                offset = dmin * static_cast<float>(block[group] >> 4);
    const std::uint8_t* low = block + 16 + group / 8 * 32 + group % 2 * 16;
    const int shift = group % 8 / 2 * 2;
    for (int i = 0; i < 16; ++i) out[16 * group + i] = factor * static_cast<float>(low[i] >> shift & 3) - offset;
  }
}

// x = d · (scale - 32) · (q - 4 where the value's high bit is 0), q of 2 bits as above; the high bit of value i of the
// group of 32 values g is bit g of byte i. Sixteen scales of six bits in twelve bytes: low four bits in the first
// eight bytes, high two bits in the last four.
void q3_k(const std::uint8_t* block, float* out) {
  const float d = half_at(block + 108);
  const std::uint8_t* scales = block + 96;
  for (int group = 0; group < 16; ++group) {
    const int low_scale = scales[group % 8] >> (group / 8 * 4) & 15;
    const int high_scale = scales[8 + group % 4] >> (group / 4 * 2) & 3;
    const float factor = d * static_cast<float>((low_scale | high_scale << 4) - 32);
    const std::uint8_t* high = block + group % 2 * 16;
    const std::uint8_t* low = block + 32 + group / 8 * 32 + group % 2 * 16;
    const int shift = group % 8 / 2 * 2, bit = group / 2;
    for (int i = 0; i < 16; ++i) {
      const int q = (low[i] >> shift & 3) - ((high[i] >> bit & 1) != 0 ? 0 : 4);
      out[16 * group + i] = factor * static_cast<float>(q);
    }
  }
}

// Four bits choose one of these values.
constexpr float not_linear[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

void iq4_nl(const std::uint8_t* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * not_linear[block[2 + i] & 15];
    out[i + 16] = d * not_linear[block[2 + i] >> 4];
  }
}

// Eight groups of 32 values; a scale has six bits, its high two in a 16-bit number, and is stored plus 32.
void iq4_xs(const std::uint8_t* block, float* out) {
  const float d = half_at(block);
  std::uint16_t high;
  std::memcpy(&high, block + 2, sizeof high);
  for (int group = 0; group < 8; ++group) {
    const int low = block[4 + group / 2] >> (group % 2 * 4) & 15;
    const float factor = d * static_cast<float>((low | (high >> (2 * group) & 3) << 4) - 32);
    const std::uint8_t* values = block + 8 + 16 * group;
    for (int i = 0; i < 16; ++i) {
      out[32 * group + i] = factor * not_linear[values[i] & 15];
      out[32 * group + i + 16] = factor * not_linear[values[i] >> 4];
    }
  }
}

template <void (*dequantise_block)(const std::uint8_t*, float*)>
void each_block(TensorType type, std::span<const std::byte> blocks, std::span<float> out) {
  const std::size_t bytes = bytes_per_block(type), values = values_per_block(type);
  const auto* from = reinterpret_cast<const std::uint8_t*>(blocks.data());
  for (std::size_t i = 0; i < blocks.size() / bytes; ++i) dequantise_block(from + i * bytes, out.data() + i * values);
}

}  // namespace

void dequantise(TensorType type, std::span<const std::byte> blocks, std::span<float> out) {
  HEADSCOPE_CHECK(is_quantised(type) && blocks.size() % bytes_per_block(type) == 0 &&
                      out.size() == blocks.size() / bytes_per_block(type) * values_per_block(type),
                  "{} bytes of {} for {} values", blocks.size(), type_name(type), out.size());
  switch (type) {
    case TensorType::q8_0:
      return each_block<q8_0>(type, blocks, out);
    case TensorType::q5_1:
      return each_block<q5_1>(type, blocks, out);
    case TensorType::q5_0:
      return each_block<q5_0>(type, blocks, out);
    case TensorType::q4_1:
      return each_block<q4_1>(type, blocks, out);
    case TensorType::q4_0:
      return each_block<q4_0>(type, blocks, out);
    case TensorType::q6_k:
      return each_block<q6_k>(type, blocks, out);
    case TensorType::q5_k:
      return each_block<q5_k>(type, blocks, out);
    case TensorType::q4_k:
      return each_block<q4_k>(type, blocks, out);
    case TensorType::q3_k:
      return each_block<q3_k>(type, blocks, out);
    case TensorType::q2_k:
      return each_block<q2_k>(type, blocks, out);
    case TensorType::iq4_nl:
      return each_block<iq4_nl>(type, blocks, out);
    case TensorType::iq4_xs:
      return each_block<iq4_xs>(type, blocks, out);
    default:
      HEADSCOPE_CHECK(false, "type {}", type_name(type));
  }
}

}  // namespace headscope
