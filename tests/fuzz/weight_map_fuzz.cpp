// An index of shards is refused in one line, or every file that it names is a plain name in its own folder.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "core/error.h"
#include "formats/model_files.h"

namespace {

void check(bool good) {
  if (!good) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headscope;
  try {
    const auto files = parse_weight_map({reinterpret_cast<const char*>(data), size}, "fuzz.json");
    for (const auto& [tensor, file] : files) {
      const std::filesystem::path path = std::filesystem::path("folder") / file;
      check(path.lexically_normal().parent_path() == "folder" && path.filename() == file);
    }
  } catch (const Error& error) {
    check(error.fault() == Fault::input && std::strlen(error.what()) < 1500);
    check(std::strchr(error.what(), '\n') == nullptr);
  }
  return 0;
}
