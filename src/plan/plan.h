// What one run takes on so many ranks of a cluster: memory and traffic of a rank, speed, and where its batch is too
// large to be of use.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/place.h"
#include "plan/cluster.h"
#include "plan/memory.h"
#include "plan/shares.h"
#include "plan/speed.h"
#include "settings/ranks_options.h"
#include "settings/setup.h"

namespace headscope {

// An update on so many ranks, and a run of them.
struct RankPlan {
  std::int64_t ranks = 1, nodes = 1;
  // As configured where the ranks can share it, otherwise the next multiple of ranks that a configuration may have.
  std::int64_t accumulation = 1;
  std::int64_t tokens_per_update = 0;
  std::int64_t updates = 0;  // of the run
  UpdateShares shares = {};
  ProcessMemory memory = {};
  double traffic_bytes = 0;  // that a rank sends in an update; it receives as many
  // Seconds of an update.
  double pass = 0;       // forward and backward, of a rank's forward steps
  double optimizer = 0;  // of the rank that orthogonalises most
  double reduce = 0;     // gradients to their owners
  double gather = 0;     // weights from their owners
  double numbers = 0;    // losses and norms of all ranks
  double copying = 0;    // weights into and out of the memory that is exchanged, and to their copies in bfloat16
  double straggler = 1;  // factor on the sum: the loss with more nodes (exchange.h)
  double alone = 0;      // of one GPU that makes all forward steps of the update
  double hidden = 0;     // the part of reduce that fits beside backward passes

  [[nodiscard]] double exchange() const { return reduce + gather + numbers; }
  [[nodiscard]] double update_seconds() const { return (pass + optimizer + exchange() + copying) * straggler; }
  [[nodiscard]] double overlapped_seconds() const { return update_seconds() - hidden * straggler; }
  [[nodiscard]] double tokens_per_s() const { return static_cast<double>(tokens_per_update) / update_seconds(); }
  [[nodiscard]] double overlapped_tokens_per_s() const {
    return static_cast<double>(tokens_per_update) / overlapped_seconds();
  }
  // The speed of a rank against a GPU that trains with as many tokens an update by itself.
  [[nodiscard]] double per_gpu() const { return alone / (static_cast<double>(ranks) * update_seconds()); }
  // The same without the loss with more nodes.
  [[nodiscard]] double lossless_tokens_per_s() const { return overlapped_tokens_per_s() * straggler; }
  [[nodiscard]] std::int64_t run_tokens() const { return updates * tokens_per_update; }
  [[nodiscard]] double run_seconds() const { return static_cast<double>(updates) * update_seconds(); }
  [[nodiscard]] double gpu_hours() const { return run_seconds() * static_cast<double>(ranks) / 3600; }
};

struct Assumption {
  std::string origin;  // measured, published, fitted, assumed, file, data sheet; program: what this one does
  std::string text;    // with its source
};

struct ScalePlan {
  Cluster cluster;
  GpuSpeed speed;
  std::vector<RankPlan> rows;     // by ranks: one, a node, eight times as many each time, and those that were asked for
  double critical_batch = 0;      // tokens of an update from which the plan warns (batch_size.h)
  std::int64_t useful_ranks = 0;  // with an update of at most so many tokens, each rank one forward step; full nodes
  std::int64_t probes = 0;        // of the run, with the ranks that were asked for
  // Of the ranks that were asked for. Low: half of the bandwidths that no file gives, the largest loss with more nodes
  // that was published, and what one rank with NCCL cost. High: gradients hidden, and no such loss.
  double tokens_per_s_low = 0, tokens_per_s_high = 0;
  // Where the last node is not full: all nodes but that one.
  std::optional<RankPlan> full_nodes;
  std::vector<Assumption> assumptions;
  // actions: notes that ask for something, or that the table cannot be read without.
  std::vector<std::string> warnings, actions, notes;

  [[nodiscard]] const RankPlan& one() const { return rows.front(); }
  [[nodiscard]] const RankPlan& asked() const { return rows.back(); }
  // Of all probes; nothing where the time of one is not known.
  [[nodiscard]] std::optional<double> probe_seconds() const {
    return speed.probe_seconds ? std::optional(static_cast<double>(probes) * *speed.probe_seconds) : std::nullopt;
  }
  // Of updates and probes.
  [[nodiscard]] std::optional<double> gpu_hours_with_probes() const {
    if (!probe_seconds()) return std::nullopt;
    return asked().gpu_hours() + *probe_seconds() * static_cast<double>(asked().ranks) / 3600;
  }
  // Whether a rank of a row fits its GPU; nothing where the cluster does not say.
  [[nodiscard]] std::optional<bool> fits(const RankPlan& row) const {
    return cluster.memory_gb ? std::optional(row.memory.total() <= *cluster.memory_gb * 1e9) : std::nullopt;
  }
  [[nodiscard]] std::optional<bool> fits() const { return fits(asked()); }
};

// Of a setup that validate() accepts, on a GPU in bfloat16. ranks: 1 to most_ranks.
ScalePlan compute_plan(const Setup& setup, RanksReduce reduce, std::int64_t ranks, const Cluster& cluster);

// Several runs: each on a GPU of its own, so many at once as there are ranks; or one after another on all ranks.
struct ManyRuns {
  std::int64_t runs = 1, rounds = 1;
  double side_by_side = 0, one_after_another = 0;  // seconds
  double gpu_hours = 0;                            // side by side
};
ManyRuns plan_runs(const ScalePlan& plan, std::int64_t runs);

}  // namespace headscope
