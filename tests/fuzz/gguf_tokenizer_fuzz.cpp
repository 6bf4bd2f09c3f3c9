// The tokenizer of a GGUF file is refused in one line, or it encodes texts into ids of its vocabulary and decodes them
// without error.
#include <span>

#include "fuzz/tokenizer_check.h"
#include "tokenizer/gguf_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headscope;
  try {
    const GgufContent content = parse_gguf(std::as_bytes(std::span(data, size)), "fuzz.gguf");
    Tokenizer tokenizer(parse_gguf_tokenizer(content.metadata, "fuzz.gguf"), "fuzz");
    fuzz::encode_and_decode(tokenizer);
  } catch (const Error& error) {
    fuzz::check(error);
  }
  return 0;
}
