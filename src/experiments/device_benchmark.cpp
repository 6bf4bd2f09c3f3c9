#include "experiments/device_benchmark.h"

#include <ATen/ATen.h>

#include "core/console.h"
#include "ops/gpu.h"
#include "stats/sample_moments.h"

namespace headscope {
namespace {

// Seconds of one call: the median of measurements of `calls` each. One measurement before them warms up.
double seconds_per_call(const ComputeDevice& device, int calls, const std::function<void()>& call) {
  constexpr int measurements = 9;
  std::vector<double> seconds;
  for (int i = 0; i <= measurements; ++i) {
    synchronize(device);
    const auto start = Clock::now();
    for (int j = 0; j < calls; ++j) call();
    synchronize(device);
    if (i > 0) seconds.push_back(seconds_since(start) / calls);
  }
  return median(seconds);
}

}  // namespace

DeviceBenchmark benchmark_device(const std::string& name, std::int64_t threads) {
  const ComputeDevice device = choose_device(name, threads);
  const bool on_gpu = !device.device.is_cpu();
  // Large enough to keep a GPU busy for a millisecond, and two cores for a fifth of a second.
  const std::int64_t size = on_gpu ? 8192 : 2048;
  const std::int64_t copied_bytes = std::int64_t{1} << (on_gpu ? 30 : 28);  // larger than any cache
  const int calls = on_gpu ? 10 : 1;                                        // the wait for a GPU takes microseconds

  DeviceBenchmark result;
  result.device = device.description;
  if (const std::optional<GpuDescription> gpu = describe_gpu(device)) {
    result.gpu = gpu->name;
    result.capability = gpu->capability;
    result.driver = gpu->driver;
    result.cudnn = gpu->cudnn;
    result.nccl = gpu->nccl;
    result.memory_gb = gpu->memory_gb;
  }

  const at::NoGradGuard no_gradients;
  {
    const auto options = at::TensorOptions().dtype(device.type).device(device.device);
    const at::Tensor a = at::randn({size, size}, options), b = at::randn({size, size}, options);
    at::Tensor product = at::empty({size, size}, options);
    const double seconds = seconds_per_call(device, calls, [&] { at::mm_out(product, a, b); });
    const auto n = static_cast<double>(size);
    result.gemm = fmt::format("{}^3 {}", size, on_gpu ? "bfloat16" : "float32");
    result.gemm_tflops = 2 * n * n * n / seconds / 1e12;
  }
  const at::Tensor from = at::zeros({copied_bytes}, at::TensorOptions().dtype(at::kByte).device(device.device));
  at::Tensor to = at::empty_like(from);
  const double seconds = seconds_per_call(device, calls, [&] { to.copy_(from); });
  result.copy_gb_s = 2 * static_cast<double>(copied_bytes) / seconds / 1e9;
  return result;
}

}  // namespace headscope
