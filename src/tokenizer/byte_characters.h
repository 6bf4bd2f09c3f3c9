// Byte-level tokenizers write every byte as one printable character: those of Latin-1 that are printable as themselves,
// the others as U+0100 and what follows (GPT-2).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headscope {

// Appends the characters of the bytes.
void append_byte_characters(std::string_view bytes, std::string& text);

// The bytes that the characters stand for; nothing when one of them stands for no byte. `text` is valid UTF-8.
std::optional<std::string> bytes_of_characters(std::string_view text);

}  // namespace headscope
