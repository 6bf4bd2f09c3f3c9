#include "plan/plan_text.h"

#include <algorithm>
#include <cmath>

#include "core/console.h"
#include "core/text.h"
#include "plan/batch_size.h"
#include "plan/exchange.h"

namespace headscope {
namespace {

// Where a plan warns. All of these are chosen; nothing was measured that says where.
constexpr double much_padding = 1.5;    // of the parameters
constexpr double much_exchange = 0.25;  // of an update
constexpr double much_probing = 0.1;    // of the time of the updates
constexpr double small_step = 0.5;      // of the operations of the smallest forward step that was timed
constexpr std::int64_t few_updates = 1000;

std::string in_file(const Cluster& cluster) {
  return cluster.file.empty() ? "" : fmt::format(" ({})", cluster.file);
}

Assumption of_cluster(const Cluster& cluster, const char* key, const std::string& text) {
  if (!cluster.gives(key)) return {"assumed", text};
  return {"file", text + in_file(cluster)};
}

std::string shared_out_note(const RankPlan& asked, const TrainOptions& train) {
  std::string note = fmt::format(
      "{} ranks cannot share train.accumulation={} evenly: planned with train.accumulation={}, {} tokens an update "
      "instead of {}; a run needs --set train.accumulation={}",
      asked.ranks, train.accumulation, asked.accumulation, with_separators(asked.tokens_per_update),
      with_separators(train.tokens_per_step()), asked.accumulation);
  if (train.probe_every % asked.accumulation != 0)
    note += fmt::format(" train.probe_every={}",
                        (train.probe_every + asked.accumulation - 1) / asked.accumulation * asked.accumulation);
  const std::int64_t sequences = train.batch * train.accumulation;
  if (const auto steps = shared_accumulation(train, asked.ranks))
    return note + fmt::format(". --set train.batch={} train.accumulation={} keeps {} tokens", sequences / *steps,
                              *steps, with_separators(train.tokens_per_step()));
  return note + fmt::format(". Nothing keeps {} tokens: an update of {} sequence{} cannot be dealt to {} ranks",
                            with_separators(train.tokens_per_step()), sequences, sequences == 1 ? "" : "s",
                            asked.ranks);
}

std::string memory_warning(const RankPlan& asked, double gigabytes) {
  const bool is_exchange = asked.memory.exchanged > asked.memory.working;
  return fmt::format("memory: {:.1f} GB a rank do not fit in {} GB; {:.1f} of them are {}: take {}",
                     asked.memory.total() / 1e9, gigabytes,
                     (is_exchange ? asked.memory.exchanged : asked.memory.working) / 1e9,
                     is_exchange ? "gradients of all ranks on their way" : "activations",
                     is_exchange ? "fewer ranks" : "a smaller train.batch, or train.recompute=true");
}

std::string padding_warning(const RankPlan& asked, std::int64_t parameters) {
  const UpdateShares& shares = asked.shares;
  std::string text = fmt::format(
      "padding: {} parameters travel as {} numbers, {:.1f} times as many. A matrix belongs to one rank as a whole, and "
      "every rank's part of the memory is as large as the largest",
      short_count(static_cast<double>(parameters)), short_count(shares.padded_elements()),
      shares.padded_elements() / static_cast<double>(parameters));
  if (shares.without_matrix > 0)
    text += fmt::format("; {} of {} ranks have none of the {} matrices and wait while others orthogonalise",
                        with_separators(shares.without_matrix), with_separators(shares.ranks),
                        with_separators(shares.matrices));
  return text;
}

// Whether the law gives less than its definition allows.
bool is_below_law(const TrainOptions& train) {
  return static_cast<double>(train.tokens) < least_tokens_of_law();
}

std::string batch_warning(const ScalePlan& plan, const TrainOptions& train) {
  const auto tokens = static_cast<double>(plan.asked().tokens_per_update);
  const std::string times = tokens < 2 * plan.critical_batch
                                ? fmt::format("{:.1f}", tokens / plan.critical_batch)
                                : with_separators(std::llround(tokens / plan.critical_batch));
  const std::string limit = short_count(plan.critical_batch);
  std::string text = fmt::format("batch: {} tokens an update are about {} times ",
                                 with_separators(plan.asked().tokens_per_update), times);
  text +=
      is_below_law(train)
          ? fmt::format("{} tokens, the least critical batch that the definition allows: beyond the critical batch,",
                        limit)
          : fmt::format("the critical batch ({} tokens, of a run of {}): beyond it,", limit, tokens_text(train.tokens));
  text += " twice the tokens save fewer and fewer updates";
  if (plan.useful_ranks > 0)
    text += fmt::format("; with train.batch={} {} is reached at {} rank{}", train.batch,
                        is_below_law(train) ? "this least one" : "it", with_separators(plan.useful_ranks),
                        plan.useful_ranks == 1 ? "" : "s");
  return text;
}

std::string law_text(const TrainOptions& train) {
  std::string text = fmt::format(
      "critical batch: 22.91·D^0.47 sequences of 512 tokens, D = {:.6g} million (Zhang et al. 2024), the batch that "
      "needs 20 % more tokens for a loss than 256 sequences",
      static_cast<double>(train.tokens) / 1e6);
  if (is_below_law(train))
    text += fmt::format(
        ". Below about {:.0f} M tokens the law gives less than its definition allows; the warning begins at {} tokens",
        least_tokens_of_law() / 1e6, short_count(least_critical_batch));
  return text;
}

std::string guide_note(const TrainOptions& train) {
  const auto tokens = static_cast<double>(train.tokens);
  std::string note = fmt::format(
      "the critical batch is a guide: it was measured with AdamW on other data, in runs of {:.1f} to {:.0f} billion "
      "tokens, 20 for each parameter; Muon is reported to bear larger updates",
      least_tokens_measured / 1e9, most_tokens_measured / 1e9);
  if (is_below_law(train))
    note += fmt::format("; of {} it is not known", tokens_text(train.tokens));
  else if (tokens < least_tokens_measured || tokens > most_tokens_measured)
    note += fmt::format("; of {} it is an extrapolation", tokens_text(train.tokens));
  return note;
}

bool has_equal_updates(const ScalePlan& plan) {
  return std::ranges::all_of(
      plan.rows, [&](const RankPlan& row) { return row.tokens_per_update == plan.asked().tokens_per_update; });
}

// The time of all probes beside that of all updates.
std::string probes_text(const ScalePlan& plan) {
  const std::string count = fmt::format("{} probe{}", with_separators(plan.probes), plan.probes == 1 ? "" : "s");
  if (!plan.probe_seconds()) return count + ": the time of a probe of this shape is not known";
  return fmt::format("{}: up to {} beside {} of updates (one of 88m took an H200 up to {} s)", count,
                     format_duration(*plan.probe_seconds()), format_duration(plan.asked().run_seconds()),
                     *plan.speed.probe_seconds);
}

bool probes_much(const ScalePlan& plan) {
  return plan.probe_seconds() > much_probing * plan.asked().run_seconds();
}

std::string updates_warning(const RankPlan& asked, const TrainOptions& train) {
  if (asked.updates == 0)
    return fmt::format(
        "updates: train.tokens={} is less than one update ({} tokens): such a run is refused; raise "
        "train.tokens",
        train.tokens, with_separators(asked.tokens_per_update));
  return fmt::format(
      "updates: the whole run has {}, which is few (below {}, chosen): learning rate and warm-up need another choice, "
      "or "
      "the run more tokens",
      with_separators(asked.updates), with_separators(few_updates));
}

std::string exchange_text(const RankPlan& asked, bool ordered) {
  const std::string gradients = ordered ? "float32 gradients after every forward step, to their owners"
                                        : "float32 gradients once an update, in rings over all ranks";
  const std::string pieces =
      asked.shares.layer_pieces == 0
          ? "behind the backward pass"
          : fmt::format("those of the layers in {} pieces, of which one is behind the backward pass",
                        asked.shares.layer_pieces);
  return fmt::format("{}, {}; then weights, which nothing hides, and their copies", gradients, pieces);
}

}  // namespace

std::string short_count(double count) {
  if (count >= 1e12) return fmt::format("{:.3g} T", count / 1e12);
  if (count >= 999.5e6) return fmt::format("{:.{}f} G", count / 1e9, count < 9.995e9 ? 2 : count < 99.95e9 ? 1 : 0);
  if (count >= 999.5e3) return fmt::format("{:.{}f} M", count / 1e6, count < 9.995e6 ? 2 : count < 99.95e6 ? 1 : 0);
  return with_separators(static_cast<std::int64_t>(std::llround(count)));
}

std::vector<Assumption> assumptions_of(const Setup& setup, const ScalePlan& plan, bool ordered) {
  const Cluster& cluster = plan.cluster;
  std::vector<Assumption> all = {
      {plan.speed.origin, plan.speed.text},
      of_cluster(cluster, "gpus_per_node", fmt::format("nodes of {} GPUs", cluster.gpus_per_node)),
      of_cluster(cluster, "link_gb_s", fmt::format("{} GB/s of a GPU inside its node", cluster.link_gb_s)),
      of_cluster(cluster, "nic_gb_s", fmt::format("{} GB/s of a GPU to other nodes", cluster.nic_gb_s)),
      {"published",
       fmt::format("a step of a ring: {:.1f} µs in a node, {:.0f} µs between nodes (NCCL, graph/tuning.cc)",
                   link_latency * 1e6, nic_latency * 1e6)},
      {"fitted",
       fmt::format("loss with more nodes: {:.1f} % for each doubling of the nodes (torchtitan, 8 and 128 H100; "
                   "four published pairs have {:.2f} to {:.2f} %)",
                   100 * loss_per_doubling, 100 * least_loss_published, 100 * most_loss_published)},
      {"program", exchange_text(plan.asked(), ordered)}};
  if (plan.asked().ranks > 1)
    all.push_back({cluster.is_measured() ? "measured" : "assumed",
                   fmt::format("weights are copied at {:.1f} TB/s, read plus written, as on one H200 (docs/gpu.md)",
                               copy_bytes_per_s / 1e12)});
  all.push_back({"published", law_text(setup.train)});
  if (cluster.memory_gb)
    all.push_back({cluster.file.empty() ? "data sheet" : "file",
                   fmt::format("{} GB of memory a GPU{}", *cluster.memory_gb, in_file(cluster))});
  return all;
}

std::vector<std::string> notes_of(const ScalePlan& plan, const Setup& setup) {
  const RankPlan& asked = plan.asked();
  std::vector<std::string> notes;
  if (asked.accumulation != setup.train.accumulation) notes.push_back(shared_out_note(asked, setup.train));
  if (const std::int64_t last = asked.ranks % plan.cluster.gpus_per_node; asked.nodes > 1 && last != 0)
    notes.push_back(
        fmt::format("the last of {} nodes has {} of its {} GPUs at work: the rings between nodes have as "
                    "many NICs",
                    asked.nodes, last, plan.cluster.gpus_per_node));
  if (plan.speed.is_assumed)
    notes.emplace_back(
        "the speed of one GPU is assumed: time it with 'headscope bench train', and name a file with tokens_per_s by "
        "--cluster");
  if (setup.device == "cpu") notes.emplace_back("device=cpu does not count: the plan is for GPUs, in bfloat16");
  notes.emplace_back("this is a calculation: headscope itself was not run on several GPUs");
  notes.push_back(guide_note(setup.train));
  if (!has_equal_updates(plan))
    notes.emplace_back(
        "the rows of the table are different trainings: their updates have different numbers of tokens. The table "
        "compares the speed of updates, not the time to a loss. 'A GPU against one' compares a rank with one GPU whose "
        "updates have as many tokens as those of the row");
  notes.emplace_back(
      "time and tokens/s are of updates alone. Not in them: probes, checkpoints and measurements, which rank 0 makes "
      "while the others wait, reading data, and starting");
  if (plan.probes > 0 && !probes_much(plan)) notes.push_back(probes_text(plan));
  return notes;
}

std::vector<std::string> warnings_of(const ScalePlan& plan, const Setup& setup) {
  const RankPlan& asked = plan.asked();
  const std::int64_t parameters = count_parameters(setup.model).total;
  std::vector<std::string> warnings;
  if (plan.fits() == false) warnings.push_back(memory_warning(asked, *plan.cluster.memory_gb));
  if (!plan.cluster.tokens_per_s && step_flops(setup) < small_step * least_flops_timed())
    warnings.push_back(fmt::format(
        "speed: a forward step of {:.3g} TFLOP: the smallest that was timed has {:.3g}; a GPU is less busy in "
        "it, so the plan is too fast",
        step_flops(setup) / 1e12, least_flops_timed() / 1e12));
  if (probes_much(plan)) warnings.push_back(probes_text(plan));
  if (static_cast<double>(asked.tokens_per_update) > plan.critical_batch)
    warnings.push_back(batch_warning(plan, setup.train));
  if (asked.updates < few_updates) warnings.push_back(updates_warning(asked, setup.train));
  if (asked.ranks > 1 && asked.shares.padded_elements() > much_padding * static_cast<double>(parameters))
    warnings.push_back(padding_warning(asked, parameters));
  if (const double share = asked.exchange() * asked.straggler / asked.update_seconds(); share > much_exchange)
    warnings.push_back(
        fmt::format("exchange: {:.0f} % of an update; more forward steps of each rank "
                    "(train.accumulation) make it less, and the update larger",
                    100 * share));
  return warnings;
}

}  // namespace headscope
