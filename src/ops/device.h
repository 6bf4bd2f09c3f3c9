// Where to compute, and in which type: float32 on a CPU, bfloat16 with float32 weights on a GPU.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>

namespace headscope {

struct ComputeDevice {
  c10::Device device = c10::kCPU;
  c10::ScalarType type = c10::kFloat;  // of activations in training; probes are float32
  std::string description;             // "cpu, 2 threads", "NVIDIA H200"
  std::int64_t threads = 0;            // of the CPU: torch's and our own

  // What choose_device takes: "cpu", "cuda" (the first GPU), "cuda:1".
  [[nodiscard]] std::string name() const {
    if (device.is_cpu()) return "cpu";
    return device.index() > 0 ? "cuda:" + std::to_string(device.index()) : "cuda";
  }
};

// "auto" (the first GPU; the CPU where there is none, and with a warning where it cannot be used), "cpu", "cuda" or
// "cuda:1". The GPU becomes the current one of this thread. `threads` of the CPU: 0 means all cores that this process
// may use. Throws Error(Fault::input) where the device is not to be had, Error(Fault::runtime) where others use it.
ComputeDevice choose_device(const std::string& name, std::int64_t threads = 0);

// How many GPUs this process may use, whether they can be used or not.
int count_gpus();
// For choose_device, by one of several processes of this machine: "cuda:1" for "auto" or "cuda" where there are several
// GPUs, so that each process has its own as far as there are so many. Any other name stays as it is.
std::string own_device(const std::string& name, int local_rank);
// Of the GPU: no other one has it, in any machine. Empty for a CPU.
std::string gpu_id(const ComputeDevice& device);
// Throws what choose_device would throw of the GPU of this number, before it opens it. `flag`: how the user named it.
void check_gpu(int index, const std::string& flag);

// Reduced types are computed in float32 inside an operation; float32 and float64 as they are.
inline c10::ScalarType inner_type(c10::ScalarType type) {
  return type == c10::kBFloat16 || type == c10::kHalf ? c10::kFloat : type;
}

// Waits for the device's queue: before a clock is read.
void synchronize(const ComputeDevice& device);

// Of the GPU: what this process holds for tensors, and all that it has.
double reserved_memory_mb(const ComputeDevice& device);
double device_memory_mb(const ComputeDevice& device);

// The most memory this process has held: resident on a CPU, allocated tensors on a GPU.
double peak_memory_mb(const ComputeDevice& device);

}  // namespace headscope
