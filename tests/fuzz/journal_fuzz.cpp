// A journal of finished heads, and the records in it.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "formats/journal.h"
#include "plasticity/head.h"

namespace {

using namespace headscope;

void read_record(const std::string& record) {
  try {
    const std::string again = to_record(from_record(record));
    if (to_record(from_record(again)) != again) std::abort();
  } catch (const Error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const JournalContent content = parse_journal(bytes);
  if (content.length > size) std::abort();
  for (const std::string& record : content.records) read_record(record);
  read_record(std::string(bytes));  // a checksum is hard to guess
  return 0;
}
