#include "tokenizer/byte_characters.h"

#include <array>
#include <cstdint>

#include "tokenizer/utf8.h"

namespace headscope {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
}

constexpr std::array<char16_t, 256> byte_characters = [] {
  std::array<char16_t, 256> characters{};
  char16_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte)
    characters[byte] = stands_for_itself(byte) ? static_cast<char16_t>(byte) : next++;
  return characters;
}();

constexpr std::size_t character_limit = 0x144;
constexpr std::array<std::int16_t, character_limit> character_bytes = [] {
  std::array<std::int16_t, character_limit> bytes{};
  bytes.fill(-1);
  for (unsigned byte = 0; byte < 256; ++byte) bytes[byte_characters[byte]] = static_cast<std::int16_t>(byte);
  return bytes;
}();

}  // namespace

void append_byte_characters(std::string_view bytes, std::string& text) {
  text.reserve(text.size() + 2 * bytes.size());
  for (const char byte : bytes) {
    const char16_t character = byte_characters[static_cast<unsigned char>(byte)];
    if (character < 0x80) {
      text += static_cast<char>(character);
    } else {
      text += static_cast<char>(0xC0 | character >> 6);
      text += static_cast<char>(0x80 | (character & 0x3F));
    }
  }
}

std::optional<std::string> bytes_of_characters(std::string_view text) {
  std::string bytes;
  for (std::size_t place = 0; place < text.size();) {
    const char32_t character = next_code_point(text, place);
    if (character >= character_limit || character_bytes[character] < 0) return std::nullopt;
    bytes += static_cast<char>(character_bytes[character]);
  }
  return bytes;
}

}  // namespace headscope
