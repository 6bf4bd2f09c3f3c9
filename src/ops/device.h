// Where to compute, and in which type: float32 on a CPU, bfloat16 with float32 weights on a GPU.
#pragma once

#include <ATen/ATen.h>

#include <string>

namespace headscope {

struct ComputeDevice {
  at::Device device = at::kCPU;
  at::ScalarType type = at::kFloat;  // of activations in training; probes are float32
  std::string description;           // "cpu, 2 threads", "NVIDIA H200"
};

// "auto" (a GPU where there is one), "cpu" or "cuda". Throws Error(Fault::input) where that is not to be had.
ComputeDevice choose_device(const std::string& name);

// Waits for the device's queue: before a clock is read.
void synchronize(const ComputeDevice& device);

// The most memory this process has held: resident on a CPU, allocated tensors on a GPU.
double peak_memory_mb(const ComputeDevice& device);

}  // namespace headscope
