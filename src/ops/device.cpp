#include "ops/device.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "core/bounds.h"
#include "core/config.h"
#include "core/console.h"
#include "core/parallel.h"
#include "ops/gpu.h"

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
  return environment_names_threads() ? of_the_environment : static_cast<std::int64_t>(available_cores());
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

// N of "cuda:N", 0 of "cuda", nothing of any other name.
std::optional<int> gpu_index(std::string_view name) {
  constexpr std::string_view gpu = "cuda";
  if (!name.starts_with(gpu)) return std::nullopt;
  name.remove_prefix(gpu.size());
  if (name.empty()) return 0;
  int index = 0;
  const char* end = name.data() + name.size();
  const auto read = std::from_chars(std::min(name.data() + 1, end), end, index);
  const bool whole = name.front() == ':' && read.ec == std::errc() && read.ptr == end && index >= 0;
  return whole ? std::optional(index) : std::nullopt;
}

void check_name(const std::string& name) {
  constexpr std::array known = {"auto", "cpu", "cuda"};
  if (name == "gpu" || name == "GPU") fail_input("unknown device '{}'; did you mean 'cuda'?", name);
  if (gpu_index(name) || std::ranges::find(known, name) != known.end()) return;
  if (name.starts_with("cuda:")) fail_input("unknown device '{}'; a GPU is 'cuda:' and its number, from 0 on", name);
  fail_input("{}", unknown_name("device", name, known));
}

#ifdef HEADSCOPE_CUDA
GpuFacts gpu_facts(int index) {
  GpuFacts facts;
  facts.index = index;
  // Both are answered without a GPU. Torch's own functions would write a warning of several lines.
  if (cudaDriverGetVersion(&facts.driver) != cudaSuccess) facts.driver = 0;
  if (cudaRuntimeGetVersion(&facts.runtime) != cudaSuccess) facts.runtime = CUDART_VERSION;
  const cudaError_t counted = cudaGetDeviceCount(&facts.count);
  if (counted != cudaSuccess) facts.count = 0;
  if (counted != cudaSuccess && counted != cudaErrorNoDevice) facts.error = cudaGetErrorString(counted);
  cudaDeviceProp properties{};
  if (index < facts.count && cudaGetDeviceProperties(&properties, index) == cudaSuccess) {
    facts.name = properties.name;
    facts.major = properties.major;
    facts.minor = properties.minor;
    for (const char byte : properties.uuid.bytes) facts.id += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  static_cast<void>(cudaGetLastError());  // torch would find it later
  return facts;
}

// Makes it the current one of this thread. Here it is seen whether another program has taken all of it.
void open_gpu(const GpuFacts& gpu, const std::string& device) {
  cudaError_t opened = cudaSetDevice(gpu.index);
  std::size_t free = 0, total = 0;
  if (opened == cudaSuccess) opened = cudaMemGetInfo(&free, &total);
  static_cast<void>(cudaGetLastError());
  if (opened == cudaErrorMemoryAllocation)
    fail_runtime("--device {}: no memory is left on the {}; other programs use it (see nvidia-smi)", device, gpu.name);
  if (opened == cudaErrorDevicesUnavailable)
    fail_runtime("--device {}: the {} is busy: another program uses it alone (see nvidia-smi)", device, gpu.name);
  if (opened != cudaSuccess)
    fail_runtime("--device {}: the {} does not answer: {}", device, gpu.name, cudaGetErrorString(opened));
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(gpu.index));
}

ComputeDevice gpu_device(const GpuFacts& gpu, const std::string& device) {
  open_gpu(gpu, device);
  // The fastest of the fused kernels on Hopper, with native grouped queries; the others remain where it does not apply.
  at::globalContext().setSDPPriorityOrder({static_cast<std::int64_t>(at::SDPBackend::cudnn_attention),
                                           static_cast<std::int64_t>(at::SDPBackend::flash_attention),
                                           static_cast<std::int64_t>(at::SDPBackend::efficient_attention),
                                           static_cast<std::int64_t>(at::SDPBackend::math)});
  return {at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(gpu.index)), at::kBFloat16, gpu.name,
          at::get_num_threads()};
}

// The GPU, or nothing where "auto" is the CPU.
std::optional<ComputeDevice> find_gpu(const std::string& name) {
  const GpuFacts gpu = gpu_facts(gpu_index(name).value_or(0));
  const std::optional<std::string> reason = why_not(gpu);
  if (!reason) return gpu_device(gpu, name);
  if (name != "auto") fail_input("--device {}: {}{}", name, *reason, gpu.count > 0 ? "" : "; use --device cpu");
  if (!gpu.none()) Console().warn(fmt::format("the GPU is not used: {}", *reason));
  return std::nullopt;
}
#else
[[noreturn]] void fail_without_cuda(const std::string& flag) {
  fail_input(
      "{}: this program was built without CUDA; ./headscope builds the one with it by itself where "
      "there is an NVIDIA driver (docs/gpu.md)",
      flag);
}

std::optional<ComputeDevice> find_gpu(const std::string& name) {
  if (name != "auto") fail_without_cuda("--device " + name);
  return std::nullopt;
}
#endif

}  // namespace

#ifdef HEADSCOPE_CUDA
int count_gpus() {
  return gpu_facts(0).count;
}

std::string gpu_id(const ComputeDevice& device) {
  return device.device.is_cpu() ? "" : gpu_facts(device.device.index()).id;
}

void check_gpu(int index, const std::string& flag) {
  const GpuFacts gpu = gpu_facts(index);
  if (const auto reason = why_not(gpu))
    fail_input("{}: {}{}", flag, *reason, gpu.count > 0 ? "" : "; use --device cpu");
}
#else
int count_gpus() {
  return 0;
}

std::string gpu_id(const ComputeDevice&) {
  return "";
}

void check_gpu(int, const std::string& flag) {
  fail_without_cuda(flag);
}
#endif

std::string own_device(const std::string& name, int local_rank) {
  const int gpus = name == "auto" || name == "cuda" ? count_gpus() : 0;
  return gpus > 1 ? fmt::format("cuda:{}", local_rank % gpus) : name;
}

ComputeDevice choose_device(const std::string& name, std::int64_t threads) {
  check_name(name);
  check_size("threads", threads, 0, most_threads);
  at::set_num_threads(static_cast<int>(threads > 0 ? threads : default_threads()));
  choose_vector_functions();
  std::optional<ComputeDevice> gpu;
  if (name != "cpu") gpu = find_gpu(name);
  return gpu ? *std::move(gpu) : cpu_device();
}

void synchronize(const ComputeDevice& device) {
  if (!device.device.is_cpu())
    c10::impl::VirtualGuardImpl(device.device.type()).synchronizeDevice(device.device.index());
}

#ifdef HEADSCOPE_CUDA
double reserved_memory_mb(const ComputeDevice& device) {
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.device.index());
  return static_cast<double>(stats.reserved_bytes[0].current) / (1 << 20);
}

double device_memory_mb(const ComputeDevice&) {
  std::size_t free = 0, total = 0;
  return cudaMemGetInfo(&free, &total) == cudaSuccess ? static_cast<double>(total) / (1 << 20) : 0;
}
#else
double reserved_memory_mb(const ComputeDevice&) {
  return 0;
}
double device_memory_mb(const ComputeDevice&) {
  return 0;
}
#endif

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
