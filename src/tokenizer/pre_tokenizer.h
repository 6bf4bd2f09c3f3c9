// The steps that cut a text into words.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tokenizer/normalizer.h"
#include "tokenizer/text_pattern.h"

namespace headscope {

namespace pre_tokenizer {

// What becomes of a match.
enum class Behavior {
  removed,
  isolated,              // a word of its own
  contiguous,            // one word with the matches beside it
  merged_with_previous,  // the end of the word before
  merged_with_next       // the start of the word behind
};

struct Split {
  TextPattern pattern;
  Behavior behavior = Behavior::isolated;
  bool invert = false;  // what is between matches counts as the match
};

struct ByteLevel {
  bool add_prefix_space = true;
  bool use_pattern = true;  // that of GPT-2
};

enum class PrependScheme { always, never, first };

struct Metaspace {
  std::string replacement = "\xE2\x96\x81";  // one character, for spaces
  PrependScheme prepend = PrependScheme::always;
  bool split = true;  // before each replacement
};

using Step = std::variant<Split, ByteLevel, Metaspace>;

// The steps that tokenizers name and that are splits: Digits, Punctuation, Whitespace, WhitespaceSplit.
Split digits(bool individual);
Split punctuation(Behavior behavior);
Split words_and_signs();
Split white_space();

// The pattern of GPT-2's words.
inline constexpr const char* gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace pre_tokenizer

// Cuts texts into words, step by step. Not for two threads at a time.
class PreTokenizer {
 public:
  explicit PreTokenizer(std::vector<pre_tokenizer::Step> steps);

  // Words are ranges of `text`, which may change. None is empty.
  void cut(NormalizedText& text, std::vector<TextRange>& words);

  // Whether words depend on PCRE2's tables of Unicode.
  [[nodiscard]] bool asks_categories() const { return asks_categories_; }

 private:
  struct Part {
    TextRange range;
    bool is_match = false;
  };
  void apply(pre_tokenizer::Split& step, NormalizedText& text, std::vector<TextRange>& words);
  void apply(const pre_tokenizer::ByteLevel& step, NormalizedText& text, std::vector<TextRange>& words);
  void apply(const pre_tokenizer::Metaspace& step, NormalizedText& text, std::vector<TextRange>& words);
  // `rewrite(word, out)` appends what becomes of the word.
  template <class Rewrite>
  static void rewrite_words(NormalizedText& text, std::vector<TextRange>& words, const Rewrite& rewrite);
  void find_parts(pre_tokenizer::Split& step, std::string_view word, std::size_t offset);

  std::vector<pre_tokenizer::Step> steps_;
  std::optional<pre_tokenizer::Split> gpt2_;  // where a step needs it
  bool asks_categories_ = false;
  // Working memory.
  std::vector<TextRange> matches_, cut_;
  std::vector<Part> parts_;
};

}  // namespace headscope
