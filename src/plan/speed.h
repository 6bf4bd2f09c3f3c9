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
  std::optional<double> probe_seconds = {};  // on an H200; nothing: not known
};

// The share of the memory's bandwidth that a copy reaches: 4.2 of 4.8 TB/s on one H200, read plus written
// (docs/gpu.md).
constexpr double copy_share = 4.2 / 4.8;
inline double copy_bytes_per_s(const Cluster& cluster) {
  return copy_share * cluster.memory_tb_s * 1e12;
}

// What ranks cost beside their exchange. One rank with NCCL, on one H200, made 0.983 of the tokens/s of one process
// in the slowest of nine rounds: 88m, updates of 4 x 8 x 2048 tokens (docs/scale.md). Which part of the program takes
// that is not known: here it is a cost of every update, or of every four forward steps of a rank where an update has
// more, in proportion to the parameters.
double most_seconds_of_ranks(std::int64_t parameters, std::int64_t steps_of_a_rank);

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
