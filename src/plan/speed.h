// How fast one GPU of a cluster trains a model, by itself.
#pragma once

#include <optional>
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
  std::optional<double> probe_seconds = {};  // up to so many, on an H200; nothing: not known
};

// Bytes that a copy reads and writes, on one H200 (docs/gpu.md).
constexpr double copy_bytes_per_s = 4.2e12;

// Operations of one forward step with its backward pass.
double step_flops(const Setup& setup);

// The smallest forward step that was timed: of this model, or where it was not timed, of any (docs/gpu.md).
struct TimedStep {
  std::string preset;
  bool is_of_this_model = false;
  std::int64_t batch = 0, seq_len = 0;
  double flops = 0;
};
TimedStep smallest_timed_step(const Setup& setup);

// How many times as long a forward step takes with train.deterministic and train.recompute.
double slowdown(const TrainOptions& train);

// tokens_per_s of the cluster's file, which is of this configuration; else what was measured on an H200, for the
// presets (docs/gpu.md); else the operations at a share of the peak rate. whole: the update of one process.
GpuSpeed gpu_speed(const Setup& setup, const Cluster& cluster, const UpdateShares& whole);

}  // namespace headscope
