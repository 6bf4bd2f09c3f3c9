#include "plan/plan.h"

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "plan/batch_size.h"
#include "plan/exchange.h"
#include "plan/plan_text.h"

namespace headscope {
namespace {

// What does not depend on the number of ranks.
struct Planner {
  const Setup& setup;
  const Cluster& cluster;
  StepKind kind;
  GpuSpeed speed;
  bool ordered;
  double loss = loss_per_doubling;

  [[nodiscard]] RankPlan on(std::int64_t ranks) const {
    const TrainOptions& train = setup.train;
    RankPlan plan;
    plan.ranks = ranks;
    plan.nodes = cluster.nodes(ranks);
    plan.accumulation =
        std::min((train.accumulation + ranks - 1) / ranks, std::max<std::int64_t>(1, most_of_a_batch / ranks)) * ranks;
    plan.tokens_per_update = train.batch * train.seq_len * plan.accumulation;
    plan.updates = train.tokens / plan.tokens_per_update;
    plan.shares = share_update(setup.model, train.qk_gain == QkGain::learned, ranks);
    plan.memory = process_memory(setup, kind, ranks > 1 ? std::optional(plan.shares) : std::nullopt, ordered);
    add_times(plan);
    return plan;
  }

  // Two thirds of a step are the backward pass. The first piece travels when that has made it, the last one behind it.
  [[nodiscard]] static double hidden_of(const RankPlan& plan, double steps) {
    if (plan.shares.layer_pieces == 0) return 0;
    const auto pieces = static_cast<double>(plan.shares.layer_pieces);
    const double of_layers =
        static_cast<double>(plan.shares.each_layer_elements) / static_cast<double>(plan.shares.each_elements);
    return (pieces - 1) / pieces * std::min(plan.reduce * of_layers, 2.0 / 3 * steps);
  }

  // Bytes read and written (optim/shares.cpp, optim/device_step.cpp): pack_weights() copies what a rank owns and
  // unpack_weights() everything else, float32 to float32. Then the bfloat16 copies of the matrices and the embedding
  // are written again, where there are any.
  [[nodiscard]] double copied_bytes() const {
    const ParameterCounts parameters = count_parameters(setup.model);
    const double packed = (4 + 4) * static_cast<double>(parameters.total);
    const double copies = (4 + 2) * static_cast<double>(parameters.matrices + parameters.embedding);
    return packed + (kind.written_out ? copies : 0);
  }

  void add_times(RankPlan& plan) const {
    const std::int64_t ranks = plan.ranks, steps = plan.accumulation / ranks;
    const auto tokens = static_cast<double>(setup.train.batch * setup.train.seq_len);
    const double step = tokens * speed.seconds_per_token, bytes = 4 * plan.shares.padded_elements();
    const double exchanges = ordered ? static_cast<double>(steps) : 1;
    const auto count = static_cast<double>(ranks);
    plan.pass = static_cast<double>(steps) * step;
    plan.optimizer = speed.optimizer_seconds * plan.shares.most_polar_flops / plan.shares.polar_flops;
    plan.traffic_bytes = (exchanges + 1) * (count - 1) / count * bytes;
    // Each piece is an operation of its own, and so are the losses and norms of all ranks.
    const double latency = ranks > 1 ? ring_latency(cluster, ranks) : 0;
    const double further = static_cast<double>(plan.shares.layer_pieces) * latency;
    plan.numbers = latency;
    plan.gather = ring_seconds(cluster, ranks, bytes) + further;
    plan.reduce = ordered ? exchanges * (all_to_all_seconds(cluster, ranks, bytes) + further) : plan.gather;
    if (ranks > 1) plan.copying = copied_bytes() / copy_bytes_per_s(cluster);
    plan.alone = static_cast<double>(plan.accumulation) * step + speed.optimizer_seconds;
    plan.hidden = hidden_of(plan, exchanges * step);
    plan.straggler = straggler_factor(cluster, ranks, loss);
  }
};

// As TrainOptions::probes_at() says, with a train.probe_every that the accumulation of the plan allows.
std::int64_t probes_of(const RankPlan& asked, const TrainOptions& train) {
  if (asked.updates == 0) return 0;
  const std::int64_t between = (train.probe_every + asked.accumulation - 1) / asked.accumulation;  // updates
  return 1 + (asked.updates + between - 1) / between;
}

std::vector<std::int64_t> shown_ranks(std::int64_t ranks, const Cluster& cluster) {
  std::vector<std::int64_t> shown = {1};
  for (std::int64_t count = std::max<std::int64_t>(2, cluster.gpus_per_node); count < ranks; count *= 8)
    shown.push_back(count);
  if (ranks > 1) shown.push_back(ranks);
  return shown;
}

// They are those of good networks and of messages of gigabytes. Half is chosen: llmq's figures are as if the one inside
// a node were about that (docs/plan.md).
Cluster with_half_of_what_no_file_gives(Cluster cluster) {
  if (!cluster.gives("link_gb_s")) cluster.link_gb_s /= 2;
  if (!cluster.gives("nic_gb_s")) cluster.nic_gb_s /= 2;
  return cluster;
}

double low_tokens_per_s(const Planner& planner, RankPlan asked) {
  const Cluster slower = with_half_of_what_no_file_gives(planner.cluster);
  Planner{planner.setup, slower, planner.kind, planner.speed, planner.ordered, most_loss_published}.add_times(asked);
  if (asked.ranks > 1)
    asked.copying = std::max(asked.copying, most_seconds_of_ranks(count_parameters(planner.setup.model).total,
                                                                  asked.accumulation / asked.ranks));
  return asked.tokens_per_s();
}

// Full nodes, from one on.
std::int64_t useful_ranks(double critical_batch, const TrainOptions& train, const Cluster& cluster) {
  const auto ranks = static_cast<std::int64_t>(critical_batch / static_cast<double>(train.batch * train.seq_len));
  return ranks < cluster.gpus_per_node ? ranks : ranks - ranks % cluster.gpus_per_node;
}

}  // namespace

ScalePlan compute_plan(const Setup& setup, RanksReduce reduce, std::int64_t ranks, const Cluster& cluster) {
  check_size("--ranks", ranks, 1, most_ranks);
  const UpdateShares whole = share_update(setup.model, setup.train.qk_gain == QkGain::learned, 1);
  const Planner planner{setup, cluster, step_on_gpu(setup), gpu_speed(setup, cluster, whole),
                        reduce == RanksReduce::ordered};
  ScalePlan plan;
  plan.cluster = cluster;
  plan.speed = planner.speed;
  for (const std::int64_t count : shown_ranks(ranks, cluster)) plan.rows.push_back(planner.on(count));
  plan.tokens_per_s_low = low_tokens_per_s(planner, plan.asked());
  plan.tokens_per_s_high = plan.asked().lossless_tokens_per_s();
  if (const std::int64_t rest = ranks % cluster.gpus_per_node; ranks > rest && rest != 0)
    plan.full_nodes = planner.on(ranks - rest);
  plan.critical_batch = critical_batch_tokens(static_cast<double>(setup.train.tokens));
  plan.useful_ranks = useful_ranks(plan.critical_batch, setup.train, cluster);
  plan.probes = probes_of(plan.asked(), setup.train);
  plan.assumptions = assumptions_of(setup, plan, planner.ordered);
  plan.warnings = warnings_of(plan, setup, planner.ordered);
  plan.actions = actions_of(plan, setup);
  plan.notes = notes_of(plan);
  return plan;
}

ManyRuns plan_runs(const ScalePlan& plan, std::int64_t runs) {
  ManyRuns many{.runs = runs, .rounds = (runs + plan.asked().ranks - 1) / plan.asked().ranks};
  many.side_by_side = static_cast<double>(many.rounds) * plan.one().run_seconds();
  many.gpu_hours = static_cast<double>(runs) * plan.one().gpu_hours();
  many.one_after_another = static_cast<double>(runs) * plan.asked().run_seconds();
  return many;
}

}  // namespace headscope
