// CMake makes the headers of cuBLAS and others that c10d's headers mention (cuda_names.h). nccl.h is the real one,
// where it is.
#if defined(HEADSCOPE_CUDA) && __has_include(<nccl.h>)
#define HEADSCOPE_HAS_NCCL
#define USE_C10D_NCCL  // c10d's headers are empty without it
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include <cstdlib>

#include "core/error.h"
#include "ranks/backend.h"

namespace headscope {

#ifdef HEADSCOPE_HAS_NCCL
C10dBackend connect_nccl(const C10dStore& store, const RankPlace& place, std::chrono::milliseconds timeout) {
  // By default a watchdog ends the process when another rank hangs. Ranks::wait_until notices it, too, and says it.
  ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", /*replace=*/0);
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, place.rank, place.size, options);
}
#else
C10dBackend connect_nccl(const C10dStore&, const RankPlace&, std::chrono::milliseconds) {
  fail_input("ranks.backend=nccl: this program was built without NCCL; use ranks.backend=gloo");
}
#endif

}  // namespace headscope
