// Undoes a block of a page, as its reader does (src/page/README.md, "Blocks").
#pragma once

#include <zlib.h>

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/missing.h"
#include "page/block.h"

namespace headscope {

// Throws Error(Fault::input) on damaged text.
inline std::string bytes_of_block(std::string_view text) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string packed;
  std::uint32_t word = 0;
  std::size_t letters = 0;
  for (const char c : text) {
    if (c == '=') break;
    const std::size_t place = alphabet.find(c);
    if (place == std::string_view::npos) fail_input("block: '{}' is no letter of base64", c);
    word = word << 6 | static_cast<std::uint32_t>(place);
    if (++letters % 4 != 0) continue;
    for (const int shift : {16, 8, 0}) packed += static_cast<char>(word >> shift & 0xff);
    word = 0;
  }
  const std::size_t left = letters % 4;
  if (left == 1 || text.size() % 4 != 0) fail_input("block: {} letters are no base64", letters);
  if (left != 0) word <<= 6 * (4 - left);
  for (std::size_t i = 1; i < left; ++i) packed += static_cast<char>(word >> (24 - 8 * i) & 0xff);

  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) fail_runtime("zlib: cannot begin");
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string bytes;
  std::array<char, 1 << 16> buffer{};
  int result = Z_OK;
  while (result == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    result = inflate(&stream, Z_NO_FLUSH);
    bytes.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (result != Z_STREAM_END) fail_input("block: is damaged");
  return bytes;
}

inline std::vector<double> values_of(const SeriesBlock& block, std::size_t moments) {
  const std::string bytes = bytes_of_block(block.text);
  const auto byte = [&](std::size_t i) { return static_cast<int>(static_cast<unsigned char>(bytes[i])); };
  std::vector<double> values;
  if (block.codec == "f32") {
    for (std::size_t i = 0; i + sizeof(float) <= bytes.size(); i += sizeof(float)) {
      float value = 0;
      std::memcpy(&value, bytes.data() + i, sizeof value);
      values.push_back(value);
    }
    return values;
  }
  const std::size_t n = block.bits == 8 ? bytes.size() : bytes.size() / 2;
  const int top = (1 << block.bits) - 2;
  int code = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (block.bits == 8) {
      code = i % moments == 0 ? byte(i) : (code + byte(i)) & 0xff;
    } else {
      const int word = byte(i) | byte(n + i) << 8;
      code = i % moments == 0 ? word : code + (word % 2 == 0 ? word / 2 : -(word + 1) / 2);
    }
    const double value = block.low + (block.high - block.low) * code / top;
    values.push_back(code > top ? missing : block.log ? std::exp(value) : value);
  }
  return values;
}

}  // namespace headscope
