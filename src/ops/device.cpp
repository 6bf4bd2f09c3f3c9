#include "ops/device.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>

#include "core/bounds.h"
#include "core/config.h"
#include "core/parallel.h"

#ifdef HEADSCOPE_CUDA
#include <ATen/SDPBackend.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>
#endif

namespace headscope {
namespace {

// Always set, even to the number that torch would take: otherwise MKL may use fewer where it likes to, and sums change.
std::int64_t default_threads() {
  static const int of_the_environment = at::get_num_threads();  // before the first change
  return std::getenv("OMP_NUM_THREADS") != nullptr ? of_the_environment : static_cast<std::int64_t>(available_cores());
}

// MKL's vector functions choose their code in the first call. Where two threads make that call at once, one of them may
// get other code, which rounds in another way: so it is made here, by one thread.
void choose_vector_functions() {
  at::zeros({1}).exp_();
}

ComputeDevice cpu_device() {
  const int threads = at::get_num_threads();
  return {at::kCPU, at::kFloat, fmt::format("cpu, {} thread{}", threads, threads == 1 ? "" : "s"), threads};
}

#ifdef HEADSCOPE_CUDA
ComputeDevice cuda_device() {
  // The fastest of the fused kernels on Hopper, with native grouped queries; the others remain where it does not apply.
  at::globalContext().setSDPPriorityOrder({static_cast<std::int64_t>(at::SDPBackend::cudnn_attention),
                                           static_cast<std::int64_t>(at::SDPBackend::flash_attention),
                                           static_cast<std::int64_t>(at::SDPBackend::efficient_attention),
                                           static_cast<std::int64_t>(at::SDPBackend::math)});
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) fail_runtime("--device cuda: the GPU does not answer");
  return {at::Device(at::kCUDA, 0), at::kBFloat16, properties.name, at::get_num_threads()};
}
#endif

}  // namespace

ComputeDevice choose_device(const std::string& name, std::int64_t threads) {
  constexpr std::array known = {"auto", "cpu", "cuda"};
  if (name == "gpu" || name == "GPU") fail_input("unknown device '{}'; did you mean 'cuda'?", name);
  if (std::ranges::find(known, name) == known.end()) fail_input("{}", unknown_name("device", name, known));
  check_size("threads", threads, 0, most_threads);
  at::set_num_threads(static_cast<int>(threads > 0 ? threads : default_threads()));
  choose_vector_functions();
#ifdef HEADSCOPE_CUDA
  if (name != "cpu" && at::hasCUDA() && c10::cuda::device_count() > 0) return cuda_device();
  if (name == "cuda") fail_input("--device cuda: no GPU was found; use --device cpu");
#else
  if (name == "cuda")
    fail_input("--device cuda: this program was built without CUDA; use the one for GPUs (docs/gpu.md)");
#endif
  return cpu_device();
}

void synchronize(const ComputeDevice& device) {
  if (!device.device.is_cpu())
    c10::impl::VirtualGuardImpl(device.device.type()).synchronizeDevice(device.device.index());
}

double peak_memory_mb(const ComputeDevice& device) {
#ifdef HEADSCOPE_CUDA
  if (device.device.is_cuda()) {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.device.index());
    return static_cast<double>(stats.allocated_bytes[0].peak) / (1 << 20);
  }
#endif
  static_cast<void>(device);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace headscope
