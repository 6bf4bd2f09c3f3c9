// How fast one GPU of a cluster trains a model, by itself.
#pragma once

#include <string>

#include "plan/cluster.h"
#include "plan/shares.h"
#include "settings/setup.h"

namespace headscope {

struct GpuSpeed {
  double seconds_per_token = 0;  // forward and backward
  double optimizer_seconds = 0;  // of an update, of all parameters
  std::string origin, text;      // measured, file or assumed; what it is
  bool is_assumed = false;
};

// Bytes that a copy reads and writes, on one H200 (docs/gpu.md).
constexpr double copy_bytes_per_s = 4.2e12;

// tokens_per_s of the cluster's file; else what was measured on an H200, for the presets (docs/gpu.md); else the
// operations at a share of the peak rate. whole: the update of one process.
GpuSpeed gpu_speed(const Setup& setup, const Cluster& cluster, const UpdateShares& whole);

}  // namespace headscope
