// The tokens of an array as a vector.
#pragma once

#include <cstdint>
#include <vector>

#include "data/tokens.h"

namespace headscope::test {

inline std::vector<std::int64_t> all_tokens(const Tokens& tokens) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(tokens.size()));
  tokens.copy(0, tokens.size(), values.data());
  return values;
}

}  // namespace headscope::test
