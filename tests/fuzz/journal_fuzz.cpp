// Any bytes are a journal: the whole records at their start, and what follows is left out.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "formats/journal.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const headscope::JournalContent content = headscope::parse_journal(bytes);
  std::size_t length = 0;
  for (const std::string& record : content.records) length += record.size() + 16;  // each behind its length and hash
  if (content.length != length || length > size) std::abort();
  return 0;
}
