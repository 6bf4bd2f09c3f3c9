// Published data that is not part of the repository: in HEADSCOPE_SHARED, or in `shared` beside the clone.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace headscope::test {

// Tests run in the root of the repository.
inline std::filesystem::path shared_folder() {
  const char* given = std::getenv("HEADSCOPE_SHARED");
  return given != nullptr ? given : "../shared";
}

}  // namespace headscope::test

// Skips the test, with a message, when the file or folder is not there.
#define HEADSCOPE_NEEDS_SHARED(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << (path).string() << " is not there; set HEADSCOPE_SHARED"
