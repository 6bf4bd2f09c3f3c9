#include "core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace headscope {
namespace {

constexpr int most_extra_digits = 9;  // a value nearer to a limit than this counts as the limit

int side_of(double value, double limit) {
  return value < limit ? -1 : value > limit ? 1 : 0;
}

bool same_sides(double value, double rounded, std::initializer_list<double> limits) {
  for (const double limit : limits)
    if (side_of(value, limit) != side_of(rounded, limit)) return false;
  return true;
}

std::string rounded_text(double value, int digits) {
  const std::string text = fmt::format("{:.{}f}", value, digits);
  return text.starts_with('-') && text.find_first_not_of("-0.") == std::string::npos ? text.substr(1) : text;
}

}  // namespace

std::string fixed_text(double value, int digits, std::initializer_list<double> limits) {
  const std::string least = rounded_text(value, digits);
  for (int extra = 0; extra <= most_extra_digits; ++extra) {
    const std::string text = extra == 0 ? least : rounded_text(value, digits + extra);
    if (same_sides(value, std::strtod(text.c_str(), nullptr), limits)) return text;
  }
  return least;
}

std::string signed_text(double value, int digits, std::initializer_list<double> limits) {
  const std::string text = fixed_text(value, digits, limits);
  return value > 0 && text.find_first_not_of("0.") != std::string::npos ? "+" + text : text;
}

std::string with_separators(std::int64_t count) {
  return count < 1000 ? std::to_string(count) : fmt::format("{},{:03}", with_separators(count / 1000), count % 1000);
}

std::string tokens_text(std::int64_t count) {
  if (count < 1'000'000) return with_separators(count) + (count == 1 ? " token" : " tokens");
  const bool is_giga = count >= 1'000'000'000;
  return fmt::format("{:.1f} {} tokens", static_cast<double>(count) / (is_giga ? 1e9 : 1e6), is_giga ? "G" : "M");
}

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  for (const char byte : text) width += (static_cast<unsigned char>(byte) & 0xC0) == 0x80 ? 0 : 1;
  return width;
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent, std::size_t column) {
  std::string lines;
  bool first = true;  // of the line
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::string_view word = text.substr(start, end - start);
    start = end + 1;
    const std::size_t size = width_of(word);
    if (!first && column + 1 + size > width) {
      lines += '\n';
      lines.append(indent, ' ');
      column = indent;
      first = true;
    }
    if (!first) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += size;
    first = false;
  }
  return lines;
}

std::string shell_word(std::string_view text) {
  if (!text.empty() && text.find_first_of(" \t\n'\"\\$`*?[](){}<>|&;#~!") == std::string_view::npos)
    return std::string(text);
  const bool has_controls =
      std::any_of(text.begin(), text.end(), [](char c) { return (c >= 0 && c < ' ') || c == 127; });
  std::string word = has_controls ? "$'" : "'";
  for (const char c : text) {
    if (has_controls && ((c >= 0 && c < ' ') || c == 127))
      word += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    else if (has_controls && (c == '\'' || c == '\\'))
      word += std::string("\\") + c;
    else
      word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return word + "'";
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

}  // namespace headscope
