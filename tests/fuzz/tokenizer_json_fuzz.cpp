// A tokenizer.json is refused in one line, or it encodes texts into ids of its vocabulary and decodes them without
// error.
#include "fuzz/tokenizer_check.h"
#include "tokenizer/tokenizer_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headscope;
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    Tokenizer tokenizer(parse_tokenizer_json(text, "fuzz.json"), "fuzz");
    fuzz::encode_and_decode(tokenizer);
  } catch (const Error& error) {
    fuzz::check(error);
  }
  return 0;
}
