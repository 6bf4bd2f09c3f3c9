// What a tokenizer of a hostile file must keep: texts become ids of its vocabulary, and ids become text.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/error.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace headscope::fuzz {

inline void check(bool good) {
  if (!good) std::abort();
}

// The pattern of a hostile file may be slow on a long text; these are short.
inline void encode_and_decode(Tokenizer& tokenizer) {
  for (const std::string_view text :
       {"", "ab <end> a", " It's 1234\n\n\xC3\xA9 \xE2\x96\x81 aaaaaaaa", "\xF0\x9F\x98\x80\x7F"})
    for (const bool special : {true, false}) {
      const auto ids = tokenizer.encode(text, {.add_special = special});
      for (const std::uint32_t id : ids) check(id < tokenizer.vocabulary());
      check(!first_invalid_utf8(tokenizer.decode(ids, special)));
    }
}

// Of a file that is refused.
inline void check(const Error& error) {
  check(error.fault() == Fault::input && std::strlen(error.what()) < 2000);
  check(std::strchr(error.what(), '\n') == nullptr);
}

}  // namespace headscope::fuzz
