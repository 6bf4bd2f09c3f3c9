// A real published model, which is not part of the repository: tests/model/fetch_real.py puts it there.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace headscope::test {

// smollm2 is SmolLM2-135M-Instruct as a folder, smollm2.gguf the file that it was made of.
inline std::filesystem::path real_models() {
  if (const char* given = std::getenv("HEADSCOPE_MODELS")) return given;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && std::string_view(cache).starts_with('/'))
    return std::filesystem::path(cache) / "headscope/models";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home == nullptr ? "" : home) / ".cache/headscope/models";
}

}  // namespace headscope::test

// Skips the test, with a message, when the real model is not there.
#define HEADSCOPE_NEEDS_REAL_MODEL()                                                                            \
  if (!std::filesystem::exists(headscope::test::real_models() / "smollm2/model.safetensors"))                   \
  GTEST_SKIP() << "no smollm2 in " << headscope::test::real_models().string() << "; tests/model/fetch_real.py " \
               << "fetches it"
