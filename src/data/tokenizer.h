// Text to token ids: one for each byte. Any text, no files needed.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace headscope::byte_tokenizer {

inline constexpr const char* name = "bytes";
inline constexpr std::uint32_t end = 256, start = 257;
inline constexpr std::int64_t vocabulary = 258;

// Appends the document's tokens, between those that mark its start and its end.
inline void encode(std::string_view document, std::vector<std::uint32_t>& tokens) {
  tokens.reserve(tokens.size() + document.size() + 2);
  tokens.push_back(start);
  for (const char c : document) tokens.push_back(static_cast<unsigned char>(c));
  tokens.push_back(end);
}

}  // namespace headscope::byte_tokenizer
