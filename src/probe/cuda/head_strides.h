// Where the vectors of heads lie in memory.
#pragma once

#include <cstdint>

namespace headscope::cuda {

// Elements between neighbours; those of a vector lie side by side. A slice of [b, t, heads, d] needs no copy.
struct HeadStrides {
  std::int64_t sequence = 0, token = 0, head = 0;
};

}  // namespace headscope::cuda
