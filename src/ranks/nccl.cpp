// CMake makes the headers of cuBLAS and others that c10d's headers mention (cuda_names.h). nccl.h is the real one,
// where it is.
#if defined(HEADSCOPE_CUDA) && __has_include(<nccl.h>)
#define HEADSCOPE_HAS_NCCL
#define USE_C10D_NCCL  // c10d's headers are empty without it
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include <c10/core/DeviceGuard.h>

#include "core/error.h"
#include "ranks/backend.h"

namespace headscope {

#ifdef HEADSCOPE_HAS_NCCL
C10dBackend connect_nccl(const C10dStore& store, const RankPlace& place, at::Device device,
                         std::chrono::milliseconds timeout) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = 2 * timeout;
  auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, place.rank, place.size, options);
  // NCCL connects with the first operation.
  const c10::DeviceGuard on_device(device);
  at::Tensor own = at::zeros({1}, at::TensorOptions(device)), all = at::empty({place.size}, own.options());
  backend->_allgather_base(all, own)->wait();
  static_cast<void>(all.cpu());
  return backend;
}
#else
C10dBackend connect_nccl(const C10dStore&, const RankPlace&, at::Device, std::chrono::milliseconds) {
  fail_input("ranks.backend=nccl: this program was built without NCCL; use ranks.backend=gloo");
}
#endif

}  // namespace headscope
