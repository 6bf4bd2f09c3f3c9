// What there is of NVIDIA GPUs, whether one can be used, and the versions of what runs on it.
#pragma once

#include <optional>
#include <string>

#include "ops/device.h"

namespace headscope {

// What driver and runtime say of one GPU.
struct GpuFacts {
  int driver = 0;            // the newest CUDA that the driver can run: 12040 is 12.4; 0: there is no driver
  int runtime = 0;           // the CUDA of this program, likewise
  int count = 0;             // GPUs that this process may use
  int index = 0;             // which of them is meant
  std::string error = {};    // what CUDA says where it cannot even count them
  std::string name = {};     // "NVIDIA H200"
  int major = 0, minor = 0;  // its compute capability
  std::string id = {};       // no other GPU has it, in any machine

  [[nodiscard]] bool none() const { return driver == 0 || (count == 0 && error.empty()); }
};

// Why it cannot be used, in a line without a period; nothing where it can.
std::optional<std::string> why_not(const GpuFacts& facts);

// "13.0" of 13000, as CUDA counts; "9.19.0" of 91900, as cuDNN and NCCL do.
std::string cuda_version(int number);
std::string library_version(long number);

// Of the GPU that computes; a version that nobody tells is nothing.
struct GpuDescription {
  std::string name, capability;                          // "NVIDIA H200", "9.0"
  std::optional<std::string> driver, cuda, cudnn, nccl;  // "580.95.05", "13.0", "9.19.0", "2.28.9"
  double memory_gb = 0;
};
// Nothing on a CPU.
std::optional<GpuDescription> describe_gpu(const ComputeDevice& device);

}  // namespace headscope
