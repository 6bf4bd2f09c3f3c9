// The steps that change a text before it is cut into words.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "tokenizer/text_pattern.h"
#include "tokenizer/unicode.h"

namespace headscope {

namespace normalizer {

struct Lowercase {};
struct Strip {
  bool left = true, right = true;
};
struct StripAccents {};
struct Replace {
  TextPattern pattern;
  std::string content;
};
struct Prepend {
  std::string text;  // before a text that is not empty
};
struct BytesAsCharacters {};  // byte_characters.h

using Step = std::variant<NormalForm, Lowercase, Strip, StripAccents, Replace, Prepend, BytesAsCharacters>;

}  // namespace normalizer

// A text on its way through a tokenizer.
struct NormalizedText {
  std::string text;
  bool at_start = true;  // its first character comes from the first one of the whole text
};

void normalize(std::vector<normalizer::Step>& steps, NormalizedText& text);

}  // namespace headscope
