// What the current GPU is. For sources that the CUDA compiler takes.
#pragma once

#include <cuda_runtime.h>

namespace headscope::cuda {

// 0 where it cannot be asked.
inline int device_attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  if (cudaGetDevice(&device) != cudaSuccess || cudaDeviceGetAttribute(&value, which, device) != cudaSuccess) return 0;
  return value;
}

// Compute capability 9.0, for which kernels of sm_90a are compiled.
inline bool is_hopper() {
  return device_attribute(cudaDevAttrComputeCapabilityMajor) == 9 &&
         device_attribute(cudaDevAttrComputeCapabilityMinor) == 0;
}

}  // namespace headscope::cuda
