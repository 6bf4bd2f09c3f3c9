// Any line is a JSON object with a text or is refused with one line; so is any description of a token file, which is
// written, read and written as the same bytes.
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/error.h"
#include "data/documents.h"
#include "data/token_file.h"

using namespace headscope;

namespace {

void check(bool condition) {
  if (!condition) std::abort();
}

template <class Parse>
void refused_or_read(Parse parse) {
  try {
    parse();
  } catch (const Error& error) {
    check(error.fault() == Fault::input && std::strchr(error.what(), '\n') == nullptr);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  refused_or_read([&] { parse_json_line(text, "text", "fuzz: line 1"); });
  refused_or_read([&] {
    const TokenFileInfo info = parse_token_info(text, "fuzz");
    check(info.vocabulary > 0 && info.end_of_text < info.vocabulary);
    check(!info.begin_of_text || *info.begin_of_text < info.vocabulary);
    const std::string written = to_text(info);
    check(to_text(parse_token_info(written, "again")) == written);
  });
  return 0;
}
