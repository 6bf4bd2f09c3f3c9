// Any text is a list of settings or is refused with one line.
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/config.h"

using namespace headscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    (void)parse_yaml(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  } catch (const Error& error) {
    if (error.fault() != Fault::input || std::strchr(error.what(), '\n') != nullptr) std::abort();
  }
  return 0;
}
