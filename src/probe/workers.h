// How many threads measure heads on a CPU.
#pragma once

#include <ATen/Parallel.h>

#include <cstddef>

namespace headscope {

// As many as tensor operations take. For parallel_for (core/parallel.h), whose jobs must not call tensor operations:
// each of its threads would start as many of its own.
inline std::size_t workers() {
  return static_cast<std::size_t>(at::get_num_threads());
}

}  // namespace headscope
