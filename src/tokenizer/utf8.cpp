#include "tokenizer/utf8.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

namespace headscope {
namespace {

struct Utf8Character {
  std::size_t length = 0;  // bytes that belong together, at least 1
  bool valid = false;
};

// The character at the beginning of `text`, which is not empty, or the longest beginning of one (Unicode, table 3-7).
Utf8Character read_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {1, true};
  const std::size_t length = first >= 0xC2 && first <= 0xDF ? 2 : first >= 0xE0 && first <= 0xEF ? 3 : 4;
  if (length == 4 && (first < 0xF0 || first > 0xF4)) return {1, false};
  for (std::size_t i = 1; i < length; ++i) {
    const unsigned char least = i > 1 ? 0x80 : first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const unsigned char most = i > 1 ? 0xBF : first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (i == text.size() || byte(i) < least || byte(i) > most) return {i, false};
  }
  return {length, true};
}

}  // namespace

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    std::uint64_t eight = 0;
    if (text.size() - i >= sizeof eight) {
      std::memcpy(&eight, text.data() + i, sizeof eight);
      if ((eight & 0x8080808080808080U) == 0) {
        i += sizeof eight;
        continue;
      }
    }
    const Utf8Character character = read_character(text.substr(i));
    if (!character.valid) return i;
    i += character.length;
  }
  return std::nullopt;
}

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Utf8Character character = read_character(bytes);
    if (character.valid)
      text += bytes.substr(0, character.length);
    else
      text += "\xEF\xBF\xBD";
    bytes.remove_prefix(character.length);
  }
  return text;
}

std::string visible_bytes(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const Utf8Character character = read_character(bytes);
    if (character.valid)
      text += bytes.substr(0, character.length);
    else
      for (const char byte : bytes.substr(0, character.length))
        text += fmt::format("⟨0x{:02X}⟩", static_cast<unsigned char>(byte));
    bytes.remove_prefix(character.length);
  }
  return text;
}

char32_t next_code_point(std::string_view text, std::size_t& place) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[place + i])); };
  const char32_t first = byte(0);
  char32_t value = first;
  const std::size_t length = utf8_length(text[place]);
  if (length == 2) value = (first & 0x1F) << 6 | (byte(1) & 0x3F);
  if (length == 3) value = (first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  if (length == 4) value = (first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  place += length;
  return value;
}

char32_t last_code_point(std::string_view text) {
  std::size_t place = text.size() - 1;
  while ((static_cast<unsigned char>(text[place]) & 0xC0) == 0x80) --place;
  return next_code_point(text, place);
}

void append_utf8(char32_t code_point, std::string& text) {
  const auto add = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (code_point < 0x80) {
    add(code_point);
  } else if (code_point < 0x800) {
    add(0xC0 | code_point >> 6);
    add(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    add(0xE0 | code_point >> 12);
    add(0x80 | (code_point >> 6 & 0x3F));
    add(0x80 | (code_point & 0x3F));
  } else {
    add(0xF0 | code_point >> 18);
    add(0x80 | (code_point >> 12 & 0x3F));
    add(0x80 | (code_point >> 6 & 0x3F));
    add(0x80 | (code_point & 0x3F));
  }
}

}  // namespace headscope
