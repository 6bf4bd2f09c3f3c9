// UTF-8: checking, reading and writing code points.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace headscope {

// Where the first byte stands that does not belong to valid UTF-8. Surrogates and code points above 10FFFF are invalid.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

// As first_invalid_utf8, but bytes that are not UTF-8 become U+FFFD, one for each longest beginning of a character
// (Unicode, "substitution of maximal subparts").
std::string replace_invalid_utf8(std::string_view bytes);

// Valid UTF-8 for people: each byte that belongs to no character as its number, ⟨0xE2⟩.
std::string visible_bytes(std::string_view bytes);

// The code point at `place`, which moves behind it. The text is valid and does not end there.
char32_t next_code_point(std::string_view text, std::size_t& place);
// The last code point of a valid text that is not empty.
char32_t last_code_point(std::string_view text);

void append_utf8(char32_t code_point, std::string& text);

// Bytes of the character whose first byte is this one.
constexpr std::size_t utf8_length(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

constexpr bool is_ascii(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  return true;
}

}  // namespace headscope
