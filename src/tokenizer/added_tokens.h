// Tokens that are found in the text before it is cut into words, such as <|endoftext|>.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/text_pattern.h"

namespace headscope {

struct AddedToken {
  std::string content;
  std::uint32_t id = 0;
  bool special = false;      // left out of decoded text
  bool single_word = false;  // not inside a word
  bool strip_left = false;   // takes the white space before it
  bool strip_right = false;  // takes the white space behind it
  bool normalized = false;   // is looked for in the normalised text, and normalised itself
};

// A part of a text: a token, or text between tokens.
struct AddedTokenMatch {
  TextRange range;
  const AddedToken* token = nullptr;  // null: text
};

// Finds the longest of several tokens at each place, from left to right.
class AddedTokenFinder {
 public:
  AddedTokenFinder() = default;
  // `contents[i]` is what is looked for of tokens[i], which must live as long. Throws Error(Fault::input) when one is
  // longer than longest_added_token. Of two with the same content the first is found. Empty ones are never found.
  AddedTokenFinder(const std::vector<const AddedToken*>& tokens, const std::vector<std::string>& contents);

  // The parts of the text in order. Parts of text are not empty; white space that a token takes belongs to its part.
  // `text` is valid UTF-8. Time: at most the length of the longest token for each byte.
  void split(std::string_view text, std::vector<AddedTokenMatch>& parts);

 private:
  struct Node {
    unsigned char byte = 0;
    std::int32_t child = -1, sibling = -1;
    const AddedToken* token = nullptr;
  };
  void insert(std::string_view content, const AddedToken& token);
  [[nodiscard]] std::int32_t child_of(std::int32_t node, unsigned char byte) const;
  // The token that begins at `place` and its end; null when there is none.
  [[nodiscard]] const AddedToken* longest_at(std::string_view text, std::size_t place, std::size_t& end) const;
  bool is_inside_word(std::string_view text, TextRange range);
  bool is_word_character(char32_t code_point);

  std::vector<Node> nodes_;
  std::array<std::int32_t, 256> first_{};  // the node of a first byte, or -1
  std::vector<TextPattern> word_;          // the pattern of one word character; none before it is needed
};

inline constexpr std::size_t longest_added_token = 4096;

}  // namespace headscope
