// What --dry-run says of so many ranks of a cluster (src/plan).
#pragma once

#include <optional>
#include <string>

#include "command.h"
#include "settings/ranks_options.h"
#include "settings/setup.h"

namespace headscope {

struct PlanFlags {
  std::optional<std::int64_t> ranks;
  std::optional<std::string> cluster;

  [[nodiscard]] bool any() const { return ranks || cluster; }
};

// --cluster; --ranks means more than a plan to `train`, which has its own.
void add_cluster_flag(CLI::App& command, PlanFlags& flags);

// Runs that a plan is for.
struct PlannedRuns {
  std::int64_t runs = 1;
  std::string of = {};  // "QK,NoQK of seeds 42": of a study
};

// Refuses what the run would refuse at its start, then prints the plan. Nothing is timed, no GPU is asked for.
int plan_ranks(const Setup& setup, RanksReduce reduce, const PlanFlags& flags, const std::string& theme,
               const PlannedRuns& runs, const CommonFlags& common);

}  // namespace headscope
