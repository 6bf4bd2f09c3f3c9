// A tokenizer.json is refused in one line, or it encodes texts into ids of its vocabulary and decodes them without
// error.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/error.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/utf8.h"

using namespace headscope;

namespace {

void check(bool good) {
  if (!good) std::abort();
}

// The pattern of a hostile file may be slow on a long text; these are short.
void encode_and_decode(Tokenizer& tokenizer) {
  for (const std::string_view text :
       {"", "ab <end> a", " It's 1234\n\n\xC3\xA9 \xE2\x96\x81 aaaaaaaa", "\xF0\x9F\x98\x80\x7F"})
    for (const bool special : {true, false}) {
      const auto ids = tokenizer.encode(text, {.add_special = special});
      for (const std::uint32_t id : ids) check(id < tokenizer.vocabulary());
      check(!first_invalid_utf8(tokenizer.decode(ids, special)));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    Tokenizer tokenizer(parse_tokenizer_json(text, "fuzz.json"), "fuzz");
    encode_and_decode(tokenizer);
  } catch (const Error& error) {
    check(error.fault() == Fault::input && std::strlen(error.what()) < 2000);
    check(std::strchr(error.what(), '\n') == nullptr);
  }
  return 0;
}
