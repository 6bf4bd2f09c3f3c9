// Any bytes are read as texts or refused with one line; a reader that has enough can stop.
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

#include "core/error.h"
#include "formats/text_input.h"

using namespace headscope;

namespace {

void check(bool condition) {
  if (!condition) std::abort();
}

// How many texts there are, of those up to `most`; none where the file is refused.
std::size_t count(std::span<const std::byte> bytes, std::size_t most) {
  std::size_t texts = 0, characters = 0;
  try {
    const bool all = for_each_text(bytes, "fuzz", "text", [&](std::string_view text) {
      for (const char c : text) characters += c != 0 ? 1 : 0;  // every byte can be read
      return ++texts < most;
    });
    check(all == (texts < most));
  } catch (const Error& error) {
    check(error.fault() == Fault::input && std::strchr(error.what(), '\n') == nullptr);
    check(std::strlen(error.what()) < 1000);
    return 0;
  }
  return texts;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const std::size_t texts = count(bytes, static_cast<std::size_t>(-1));
  if (texts > 1) check(count(bytes, texts / 2) == texts / 2);
  return 0;
}
