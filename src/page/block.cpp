#include "page/block.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"

namespace headscope {
namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
// The largest ratio that a linear scale shows well: with 12 bits its smallest value is off by 1 % at most.
constexpr double most_linear_ratio = 100;
// The half of a step, and what a reader's own arithmetic adds to it.
constexpr double rounding_room = 1 + 1e-6;

static_assert(std::endian::native == std::endian::little, "blocks are little-endian");

int top_code(int bits) {
  return (1 << bits) - 2;
}

struct Scale {
  double low = 0, high = 0;
  bool log = false;

  [[nodiscard]] double coded(double value) const { return log ? std::log(value) : value; }
};

Scale scale_of(std::span<const double> values, bool may_be_log) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low > high) return {};
  if (may_be_log && low > 0 && high / low > most_linear_ratio) return {std::log(low), std::log(high), true};
  return {low, high, false};
}

// Enough for the range of whole numbers; 0: not even the most are.
int bits_of_index(const Scale& scale, int bits) {
  for (const int enough : {8, 10, 12})
    if (enough >= bits && scale.high - scale.low <= top_code(enough)) return enough;
  return 0;
}

std::vector<std::uint16_t> codes_of(std::span<const double> values, const Scale& scale, int bits) {
  const int top = top_code(bits);
  const double range = scale.high - scale.low;
  std::vector<std::uint16_t> codes;
  codes.reserve(values.size());
  for (const double value : values) {
    double code = top + 1;
    if (std::isfinite(value)) {
      // Halves before the difference: the range of very large numbers is not finite.
      const double share = range > 0 ? (scale.coded(value) / 2 - scale.low / 2) / (scale.high / 2 - scale.low / 2) : 0;
      code = std::clamp(std::round(share * top), 0.0, static_cast<double>(top));
    }
    codes.push_back(static_cast<std::uint16_t>(code));
  }
  return codes;
}

std::uint16_t zigzag(int difference) {
  return static_cast<std::uint16_t>(difference >= 0 ? 2 * difference : -2 * difference - 1);
}

// Differences along the moments of each head: with 8 bits one plane modulo 256, otherwise low bytes, then high bytes.
std::string planes(const std::vector<std::uint16_t>& codes, std::size_t moments, int bits) {
  const std::size_t n = codes.size();
  std::string bytes(bits == 8 ? n : 2 * n, '\0');
  for (std::size_t i = 0; i < n; ++i) {
    const int before = i % moments == 0 ? 0 : codes[i - 1];
    const int difference = codes[i] - before;
    if (bits == 8) {
      bytes[i] = static_cast<char>(difference & 0xff);
      continue;
    }
    const std::uint16_t word = i % moments == 0 ? codes[i] : zigzag(difference);
    bytes[i] = static_cast<char>(word & 0xff);
    bytes[n + i] = static_cast<char>(word >> 8);
  }
  return bytes;
}

std::string f32_bytes(std::span<const double> values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float value =
        std::isfinite(values[i]) ? static_cast<float>(values[i]) : std::numeric_limits<float>::quiet_NaN();
    std::memcpy(bytes.data() + i * sizeof(float), &value, sizeof value);
  }
  return bytes;
}

}  // namespace

std::string base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t word = 0;
    for (std::size_t j = 0; j < 3; ++j) word = word << 8 | (j < left ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j) text += j <= left ? alphabet[word >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

std::string block_text(std::string_view bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string packed(size, '\0');
  const int result = compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                               reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uLong>(bytes.size()), 9);
  HEADSCOPE_CHECK(result == Z_OK, "zlib: {}", result);
  packed.resize(size);
  return base64(packed);
}

std::string f32_block(std::span<const double> values) {
  return block_text(f32_bytes(values));
}

SeriesBlock series_block(std::span<const double> values, std::size_t moments, const BlockPrecision& precision,
                         bool index) {
  HEADSCOPE_CHECK(moments > 0 && values.size() % moments == 0, "{} values, {} moments", values.size(), moments);
  Scale scale = scale_of(values, !index && !precision.exact);
  SeriesBlock block;
  block.bits = index ? bits_of_index(scale, precision.bits) : precision.bits;
  if (precision.exact || block.bits == 0) {
    block.codec = "f32";
    block.bits = 32;
    block.low = scale.low;
    block.high = scale.high;
    for (const double value : values)
      if (std::isfinite(value)) block.error = std::max(block.error, std::abs(static_cast<float>(value) - value));
    block.text = f32_block(values);
    return block;
  }
  if (index) scale.high = scale.low + top_code(block.bits);  // a code is the number itself, less the smallest
  block.codec = fmt::format("d{}", block.bits);
  block.low = scale.low;
  block.high = scale.high;
  block.log = scale.log;
  block.error = index ? 0 : (scale.high / 2 - scale.low / 2) / top_code(block.bits) * rounding_room;
  block.text = block_text(planes(codes_of(values, scale, block.bits), moments, block.bits));
  return block;
}

}  // namespace headscope
