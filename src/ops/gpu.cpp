#include "ops/gpu.h"

#include <fmt/format.h>

#include <array>

#include "core/error.h"

#ifdef HEADSCOPE_CUDA
#include <ATen/detail/CUDAHooksInterface.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#endif

namespace headscope {

std::string cuda_version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

std::string library_version(long number) {
  return fmt::format("{}.{}.{}", number / 10000, number % 10000 / 100, number % 100);
}

std::optional<std::string> why_not(const GpuFacts& facts) {
  constexpr int least_major = 8;  // kernels are compiled for it and newer ones (cmake/Torch.cmake)
  if (facts.driver == 0) return "there is no NVIDIA driver";
  // A driver runs every CUDA of its major version, and older ones.
  if (facts.driver / 1000 < facts.runtime / 1000)
    return fmt::format("the NVIDIA driver is too old: it knows CUDA {}, and this program needs {}",
                       cuda_version(facts.driver), cuda_version(facts.runtime));
  if (!facts.error.empty()) return fmt::format("the NVIDIA driver does not work: {}", facts.error);
  if (facts.count == 0) return "no GPU was found";
  if (facts.index >= facts.count)
    return facts.count == 1 ? "there is 1 GPU, cuda:0"
                            : fmt::format("there are {} GPUs, cuda:0 to cuda:{}", facts.count, facts.count - 1);
  if (facts.major < least_major)
    return fmt::format("the {} has compute capability {}.{}, and {}.0 is needed", facts.name, facts.major, facts.minor,
                       least_major);
  return std::nullopt;
}

#ifdef HEADSCOPE_CUDA
namespace {

template <class Function>
Function* function_of(void* library, const char* name) {
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library, name));
}

// Of the driver's own library: it is part of the driver, so nothing can be linked with it.
std::optional<std::string> driver_version() {
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
  const auto begin = function_of<int()>(library, "nvmlInit_v2");
  const auto ask = function_of<int(char*, unsigned)>(library, "nvmlSystemGetDriverVersion");
  const auto end = function_of<int()>(library, "nvmlShutdown");
  std::array<char, 96> text{};
  if (begin != nullptr && ask != nullptr && end != nullptr && begin() == 0) {
    if (ask(text.data(), text.size() - 1) != 0) text[0] = '\0';
    end();
  }
  if (text[0] != '\0') return text.data();
  int number = 0;
  if (cudaDriverGetVersion(&number) != cudaSuccess) return std::nullopt;
  return "CUDA " + cuda_version(number);
}

std::optional<std::string> runtime_version() {
  int number = 0;
  if (cudaRuntimeGetVersion(&number) != cudaSuccess) return std::nullopt;
  return cuda_version(number);
}

// Of the library that torch has loaded; its headers are not among the wheels that we build with.
std::optional<std::string> nccl_version() {
  void* library = ::dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
  const auto ask = function_of<int(int*)>(library, "ncclGetVersion");
  int number = 0;
  if (ask == nullptr || ask(&number) != 0) return std::nullopt;
  return library_version(number);
}

}  // namespace
#endif

std::optional<GpuDescription> describe_gpu(const ComputeDevice& device) {
  if (device.device.is_cpu()) return std::nullopt;
#ifdef HEADSCOPE_CUDA
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, device.device.index()) != cudaSuccess)
    fail_runtime("--device {}: the GPU does not answer", device.name());
  GpuDescription description;
  description.name = properties.name;
  description.capability = fmt::format("{}.{}", properties.major, properties.minor);
  description.driver = driver_version();
  description.cuda = runtime_version();
  description.cudnn = library_version(at::detail::getCUDAHooks().versionRuntimeCuDNN());
  description.nccl = nccl_version();
  description.memory_gb = static_cast<double>(properties.totalGlobalMem) / 1e9;
  return description;
#else
  return std::nullopt;
#endif
}

}  // namespace headscope
