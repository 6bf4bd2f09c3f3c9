// Patterns of tokenizer files are written for the Oniguruma library (Ruby's syntax). PCRE2 reads some of it in another
// way: \s, \w, \h, scripts, {n,m}+, classes in classes. This translates what published tokenizers use.
#pragma once

#include <string>
#include <string_view>

namespace headscope {

struct TranslatedPattern {
  std::string text;              // for PCRE2 with UTF and without UCP
  bool asks_categories = false;  // its matches depend on PCRE2's tables of Unicode
};

// `pattern` is valid UTF-8. Throws Error(Fault::input) naming the pattern and what is in it that is not translated.
TranslatedPattern translate_pattern(std::string_view pattern);

}  // namespace headscope
