#include "figures/script.h"

#include <algorithm>
#include <vector>

namespace headscope {
namespace {

// The length of the UTF-8 sequence at the start of `text`, which is not empty; 0 when there is none. XML, and so SVG,
// has no place for U+FFFE and U+FFFF either.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const std::size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < length) return 0;
  unsigned code = byte(0) & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < least[length] || code > 0x10FFFF || surrogate || code == 0xFFFE || code == 0xFFFF ? 0 : length;
}

}  // namespace

Script gnuplot_text(std::string_view text) {
  std::string result = "'";
  bool after_quote = true;  // the opening one, or one of the text
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    const char c = text[0];
    const auto code = static_cast<unsigned char>(c);
    if (length == 0) {
      result += "\uFFFD";
    } else if (code < 0x20 || code == 0x7f) {
      result += ' ';
    } else if (c == '\'') {
      // gnuplot takes '' for a quote between other characters only: elsewhere it ends the string.
      result += after_quote ? "\\047" : "''";
    } else {
      if (std::string_view("_^{}@&~\\").find(c) != std::string_view::npos) result += '\\';
      result += text.substr(0, length);
      if (text.starts_with("\\U+")) result += "{}";  // gnuplot would put the character of that number into a label
    }
    after_quote = c == '\'';
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return Script(Script::Made{result + "'"});
}

Script gnuplot_name(std::string_view name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  HEADSCOPE_CHECK(!name.empty() && std::all_of(name.begin(), name.end(), is_plain), "name = '{}'", name);
  return Script(Script::Made{std::string(name)});
}

Script join(std::span<const Script> parts, const Script& separator) {
  Script result;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) result += separator;
    result += parts[i];
  }
  return result;
}

std::string shorten(std::string_view text, std::size_t limit) {
  std::vector<std::string_view> characters;
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(characters.back().size()))
    characters.push_back(rest.substr(0, std::max<std::size_t>(sequence_length(rest), 1)));
  if (characters.size() <= limit) return std::string(text);
  const std::size_t tail = (limit - 1) / 2;
  std::string result;
  for (std::size_t i = 0; i < limit - 1 - tail; ++i) result += characters[i];
  result += "…";
  for (std::size_t i = characters.size() - tail; i < characters.size(); ++i) result += characters[i];
  return result;
}

}  // namespace headscope
