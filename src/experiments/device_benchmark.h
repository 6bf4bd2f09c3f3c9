// What the device is and how fast it computes, apart from any model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace headscope {

struct DeviceBenchmark {
  std::string device;                              // "NVIDIA H200", "cpu, 2 threads"
  std::optional<std::string> gpu, capability;      // "NVIDIA H200", "9.0"; all optional ones are nothing on a CPU
  std::optional<std::string> driver, cudnn, nccl;  // versions
  std::optional<double> memory_gb;
  std::string gemm;        // the product that was timed: "8192^3 bfloat16"
  double gemm_tflops = 0;  // 1e12 additions and multiplications a second
  double copy_gb_s = 0;    // bytes read and written by a copy, 1e9 a second
};

// A square matrix product of random numbers in the compute type of the device, and a copy of memory: medians.
DeviceBenchmark benchmark_device(const std::string& device, std::int64_t threads);

}  // namespace headscope
