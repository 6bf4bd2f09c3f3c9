// A pattern of a tokenizer, ready to search with: a plain text or a regular expression (PCRE2).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

struct TextRange {
  std::size_t begin = 0, end = 0;
};

class TextPattern {
 public:
  // Throws Error(Fault::input) when it is empty.
  static TextPattern literal(std::string text);
  // In the syntax of Oniguruma (pattern_syntax.h). Throws Error(Fault::input) naming the pattern.
  static TextPattern expression(std::string_view pattern);

  // The matches from left to right; none overlaps another. An empty match does not follow the last one directly.
  // `text` is valid UTF-8. Throws Error(Fault::input) naming the pattern when it needs too many steps or too much
  // memory; patterns of published tokenizers need about one step a byte. Not for two threads at a time, and
  // copies share their working memory.
  void find(std::string_view text, std::vector<TextRange>& matches);

  // Whether matches depend on PCRE2's tables of Unicode.
  [[nodiscard]] bool asks_categories() const { return asks_categories_; }

 private:
  struct Compiled;

  TextPattern() = default;
  void find_literal(std::string_view text, std::vector<TextRange>& matches) const;
  // The first match at or behind `from`; false when there is none.
  bool match(std::string_view text, std::size_t from, TextRange& found);

  std::string source_;
  bool asks_categories_ = false;
  std::shared_ptr<Compiled> compiled_;  // null: a plain text
};

// The text with `content` in the place of each match.
std::string with_replaced(std::string_view text, std::span<const TextRange> matches, std::string_view content);

// A class of the word characters where the `tokenizers` library uses Rust's regular expressions, which differ from
// those of Oniguruma (\w): alphabetic, marks, decimal digits, connectors, joiners. Without the brackets.
inline constexpr const char* rust_word_characters =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200C}\x{200D})"
    R"(\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";

// The version of Unicode in PCRE2's tables: "14.0.0".
std::string pattern_unicode_version();

}  // namespace headscope
