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
constexpr double tiny_step = 0.01;      // of the same: what is launched takes longer than the arithmetic
constexpr double other_run = 0.01;      // of the run's tokens
constexpr std::int64_t few_updates = 1000;

std::string in_file(const Cluster& cluster) {
  return cluster.file.empty() ? "" : fmt::format(" ({})", cluster.file);
}

// source: where the number is from that is assumed.
Assumption of_cluster(const Cluster& cluster, const char* key, const std::string& text, const char* source = "") {
  if (!cluster.gives(key)) return {"assumed", text + source};
  return {"file", text + in_file(cluster)};
}

std::string shared_out_note(const RankPlan& asked, const TrainOptions& train) {
  const std::string ranks = with_separators(asked.ranks), tokens = with_separators(train.tokens_per_step());
  const std::string note = fmt::format(
      "{} ranks cannot share train.accumulation={} evenly. What is planned: --set train.accumulation={}{}, which makes "
      "{} tokens an update instead of {}",
      ranks, train.accumulation, asked.accumulation, probes_between(train, asked.accumulation),
      with_separators(asked.tokens_per_update), tokens);
  const std::int64_t sequences = train.batch * train.accumulation;
  if (const auto steps = shared_accumulation(train, asked.ranks))
    return note + fmt::format(". What keeps {} tokens an update instead: --set train.batch={} train.accumulation={}{}",
                              tokens, sequences / *steps, *steps, probes_between(train, *steps));
  return note + fmt::format(". Nothing keeps {} tokens an update: its {} cannot be dealt to {} ranks", tokens,
                            counted(sequences, "sequence"), ranks);
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
  const double times = shares.padded_elements() / static_cast<double>(parameters);
  std::string text = fmt::format(
      "padding: {} parameters travel as {} numbers, {} times as many. A matrix belongs to one rank as a whole, and "
      "every rank's part of the memory is as large as the largest",
      short_count(static_cast<double>(parameters)), short_count(shares.padded_elements()),
      times < 999.95 ? fmt::format("{:.1f}", times) : short_count(times));
  if (shares.without_matrix > 0)
    text += fmt::format("; {} of {} ranks have none of the {} matrices and wait while others orthogonalise",
                        with_separators(shares.without_matrix), with_separators(shares.ranks),
                        with_separators(shares.matrices));
  return text;
}

std::string batch_warning(const ScalePlan& plan, const TrainOptions& train) {
  const auto tokens = static_cast<double>(plan.asked().tokens_per_update);
  const std::string times = tokens < 2 * plan.critical_batch
                                ? fmt::format("{:.1f}", tokens / plan.critical_batch)
                                : with_separators(std::llround(tokens / plan.critical_batch));
  std::string text = fmt::format(
      "batch: {} tokens an update are about {} times the critical batch, {} tokens (explained below): beyond it, more "
      "tokens an update save few updates",
      with_separators(plan.asked().tokens_per_update), times, short_count(plan.critical_batch));
  const double of_a_step = static_cast<double>(train.batch * train.seq_len * plan.asked().ranks);
  const auto steps = static_cast<std::int64_t>(plan.critical_batch / of_a_step);  // of each rank
  if (steps > 0)
    text += fmt::format("; --set train.accumulation={}{} stays below it", steps * plan.asked().ranks,
                        probes_between(train, steps * plan.asked().ranks));
  else if (plan.useful_ranks > 0)
    text += fmt::format("; {} with one forward step of train.batch={} each stay below it",
                        counted(plan.useful_ranks, "rank"), train.batch);
  return text;
}

// All that is said of the critical batch, but for the warning.
std::string law_text(const TrainOptions& train) {
  const auto tokens = static_cast<double>(train.tokens);
  std::string text = fmt::format(
      "critical batch: the batch that needs 20 % more tokens for a loss than 256 sequences of 512 tokens. Law: "
      "22.91·D^0.47 such sequences, D million tokens of the run (Zhang et al. 2024, AdamW, {:.1f} to {:.0f} billion "
      "tokens): {} tokens for a run of {}",
      least_tokens_measured / 1e9, most_tokens_measured / 1e9, short_count(critical_batch_tokens(tokens)),
      tokens_text(train.tokens));
  if (tokens < least_tokens_of_law())
    text += fmt::format(
        ", an extrapolation. So short a run it says little of: by its own definition it is {} at least, and it "
        "compares "
        "with {} tokens an update, which may be too many by themselves. Compare losses",
        with_separators(std::llround(least_by_definition)),
        with_separators(std::llround(reference_sequences * sequence_tokens)));
  else if (tokens < least_tokens_measured || tokens > most_tokens_measured)
    text += ", an extrapolation";
  if (static_cast<double>(train.seq_len) != sequence_tokens)
    text += fmt::format(". That as many tokens are critical with train.seq_len={} is assumed", train.seq_len);
  return text + ". With Muon, larger batches stay efficient (arXiv 2505.02222); by how much, no law says";
}

bool has_equal_updates(const ScalePlan& plan) {
  return std::ranges::all_of(
      plan.rows, [&](const RankPlan& row) { return row.tokens_per_update == plan.asked().tokens_per_update; });
}

// The time of all probes beside that of all updates.
std::string probes_text(const ScalePlan& plan) {
  const std::string count = counted(plan.probes, "probe");
  if (!plan.probe_seconds()) return count + ": the time of a probe of this shape is not known";
  return fmt::format("{}: about {} beside {} of updates (one of 88m took an H200 {} s, mean of eight)", count,
                     format_duration(*plan.probe_seconds()), format_duration(plan.asked().run_seconds()),
                     *plan.speed.probe_seconds);
}

bool probes_much(const ScalePlan& plan) {
  return plan.probe_seconds() > much_probing * plan.asked().run_seconds();
}

std::string updates_warning(const RankPlan& asked, const TrainOptions& train) {
  if (has_no_update(asked))
    return fmt::format(
        "updates: train.tokens={} is less than one update ({} tokens): such a run is refused; raise train.tokens, or "
        "take fewer ranks",
        train.tokens, with_separators(asked.tokens_per_update));
  return fmt::format(
      "updates: the whole run has {}, which is few (below {}, chosen): learning rate and warm-up need another choice, "
      "or the run more tokens",
      with_separators(asked.updates), with_separators(few_updates));
}

// A smaller forward step takes less than its part of the time.
std::string step_warning(const Setup& setup, const TimedStep& timed) {
  const double share = step_flops(setup) / timed.flops;
  return fmt::format(
      "speed: a forward step of {} x {} tokens has {:.2g} % of the arithmetic of the smallest that was timed{} ({} x "
      "{} "
      "tokens{}): a GPU is less busy in it, so the plan is too fast{}",
      setup.train.batch, setup.train.seq_len, 100 * share,
      timed.is_of_this_model ? fmt::format(" of {}", timed.preset) : "", timed.batch, timed.seq_len,
      timed.is_of_this_model ? "" : fmt::format(" of {}", timed.preset),
      share < tiny_step ? " by far: what is launched takes longer than the arithmetic" : "");
}

// Gbit/s taken for GB/s.
std::string cluster_warning(const Cluster& cluster) {
  return fmt::format(
      "cluster: nic_gb_s={:.6g} is more than link_gb_s={:.6g}: both are GB/s of one GPU, one way; 400 Gbit/s are 50 "
      "GB/s",
      cluster.nic_gb_s, cluster.link_gb_s);
}

// Full nodes where they are faster. More forward steps of each rank only where the run then has updates enough, none
// beyond the critical batch.
std::string exchange_warning(const ScalePlan& plan, const TrainOptions& train, bool ordered, double share) {
  const RankPlan& asked = plan.asked();
  const std::string text = fmt::format("exchange: {:.0f} % of an update; ", 100 * share);
  if (plan.full_nodes && plan.full_nodes->tokens_per_s() > asked.tokens_per_s())
    return text + fmt::format("take {}: the full nodes make {} tokens/s by themselves, these {} ranks {}",
                              counted(plan.full_nodes->ranks, "rank"), short_count(plan.full_nodes->tokens_per_s()),
                              with_separators(asked.ranks), short_count(asked.tokens_per_s()));
  if (ordered && asked.accumulation > asked.ranks)
    return text + "gradients travel after every forward step; with ranks.reduce=ring once an update";
  const std::int64_t accumulation = 2 * asked.accumulation, tokens = 2 * asked.tokens_per_update;
  if (accumulation <= most_of_a_batch && static_cast<double>(tokens) <= plan.critical_batch &&
      asked.updates / 2 >= few_updates)
    return text + fmt::format("--set train.accumulation={}{} makes it less, and the update larger", accumulation,
                              probes_between(train, accumulation));
  if (accumulation > most_of_a_batch || asked.updates < 2) return text + "take fewer ranks";
  return text +
         fmt::format(
             "take fewer ranks. More forward steps of each rank (train.accumulation) make it less, too, but leave "
             "the run {} of {} tokens or fewer",
             counted(asked.updates / 2, "update"), with_separators(tokens));
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

// Rows whose runs have clearly fewer tokens: a run is whole updates.
std::string other_runs_text(const ScalePlan& plan, const TrainOptions& train) {
  std::vector<std::string> others;
  for (const RankPlan& row : plan.rows)
    if (!has_no_update(row) &&
        static_cast<double>(train.tokens - row.run_tokens()) > other_run * static_cast<double>(train.tokens))
      others.push_back(fmt::format("{} on {}", tokens_text(row.run_tokens()), counted(row.ranks, "rank")));
  if (others.empty()) return "";
  return fmt::format(". Their runs differ, too, because a run is whole updates: {} instead of {}",
                     fmt::join(others, ", "), tokens_text(train.tokens));
}

// What gives all rows updates of the same tokens.
std::string equal_rows_text(const ScalePlan& plan, const TrainOptions& train) {
  const std::int64_t accumulation = plan.asked().accumulation;
  if (std::ranges::any_of(plan.rows, [&](const RankPlan& row) { return accumulation % row.ranks != 0; })) return "";
  return fmt::format(". Rows of one training: --set train.accumulation={}{}", accumulation,
                     probes_between(train, accumulation));
}

std::string speed_note(const Setup& setup) {
  const bool same_accumulation = preset_setup(setup.preset).train.accumulation == setup.train.accumulation;
  return fmt::format(
      "the speed of one GPU is assumed. Do not compare this plan with that of a cluster whose speed was measured: the "
      "difference may be that of the assumption. To measure it: '{} bench train --preset {} --batch {}{} --device "
      "cuda', with the same --set of the model; then name a file with tokens_per_s by --cluster",
      called_as(), setup.preset, setup.train.batch,
      same_accumulation ? "" : fmt::format(" --accumulation {}", setup.train.accumulation));
}

// What tokens_per_s of the file asks of the peak rate; 0 where the file has none.
double share_of_peak(const Cluster& cluster, const Setup& setup) {
  return cluster.tokens_per_s.value_or(0) * training_flops_per_token(setup.model, setup.train.seq_len) /
         (cluster.peak_tflops * 1e12);
}

std::string peak_warning(const Cluster& cluster, double share) {
  return fmt::format("{} tokens/s of this model are {:.3g} times the peak of {} TFLOP/s{}: one of the two is wrong",
                     amount_text(*cluster.tokens_per_s), share, amount_text(cluster.peak_tflops),
                     cluster.gives("peak_tflops") ? "" : ", an H100's, which is taken where the file gives none");
}

}  // namespace

std::string short_count(double count) {
  if (count >= 1e12) return fmt::format("{:.3g} T", count / 1e12);
  if (count >= 999.5e6) return fmt::format("{:.{}f} G", count / 1e9, count < 9.995e9 ? 2 : count < 99.95e9 ? 1 : 0);
  if (count >= 999.5e3) return fmt::format("{:.{}f} M", count / 1e6, count < 9.995e6 ? 2 : count < 99.95e6 ? 1 : 0);
  return with_separators(static_cast<std::int64_t>(std::llround(count)));
}

bool has_no_update(const RankPlan& row) {
  return row.updates == 0;
}

bool does_not_fit(const ScalePlan& plan, const RankPlan& row) {
  return plan.fits(row) == false;
}

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", with_separators(count), noun, count == 1 ? "" : "s");
}

std::string gpu_time(double hours) {
  if (hours >= 999.5) return with_separators(std::llround(hours)) + " GPU-hours";
  if (hours >= 0.01) return fmt::format("{:.3g} GPU-hours", hours);
  if (const double seconds = 3600 * hours; seconds >= 0.01) return fmt::format("{:.2f} GPU-seconds", seconds);
  return "less than 0.01 GPU-seconds";
}

std::string range_text(const ScalePlan& plan) {
  const RankPlan& asked = plan.asked();
  const bool halved = !plan.cluster.gives("link_gb_s") || (asked.nodes > 1 && !plan.cluster.gives("nic_gb_s"));
  std::vector<std::string> low, high;
  if (halved) low.emplace_back("half of the bandwidths that no file gives");
  if (asked.nodes > 1)
    low.push_back(fmt::format("a loss of {:.2f} % for each doubling of the nodes", 100 * most_loss_published));
  low.emplace_back("the slowest of nine rounds of one rank with NCCL (between GPUs it was never run)");
  if (asked.hidden > 0) high.emplace_back("gradients hidden");
  if (asked.nodes > 1) high.emplace_back("no loss with more nodes");
  if (high.empty()) high.emplace_back("as in the table");
  return fmt::format(
      "{} to {} tokens/s on {}. Low: {}. High: {}. It is no error bar: the speed of one GPU is the same in both{}",
      short_count(plan.tokens_per_s_low), short_count(plan.tokens_per_s_high), counted(asked.ranks, "rank"),
      fmt::join(low, ", "), fmt::join(high, ", "), plan.speed.is_assumed ? ", assumed" : "");
}

std::vector<Assumption> assumptions_of(const Setup& setup, const ScalePlan& plan, bool ordered) {
  const Cluster& cluster = plan.cluster;
  std::vector<Assumption> all = {
      {plan.speed.origin, plan.speed.text},
      of_cluster(cluster, "gpus_per_node", fmt::format("nodes of {}", counted(cluster.gpus_per_node, "GPU"))),
      of_cluster(cluster, "link_gb_s", fmt::format("{} GB/s of a GPU inside its node", amount_text(cluster.link_gb_s)),
                 ", which rings of NCCL reach with gigabytes (NVIDIA/nccl-tests, issue 212)"),
      of_cluster(cluster, "nic_gb_s", fmt::format("{} GB/s of a GPU to other nodes", amount_text(cluster.nic_gb_s)),
                 "; NCCL reaches 46 to 48 with a NIC of 400 Gbit/s (NVIDIA/nccl-tests, issue 290)"),
      {"published",
       fmt::format("a step of a ring: {:.1f} µs in a node, {:.0f} µs between nodes: constants by which NCCL chooses, "
                   "not measured times (graph/tuning.cc)",
                   link_latency * 1e6, nic_latency * 1e6)},
      {"fitted",
       fmt::format("loss with more nodes: {:.1f} % for each doubling of the nodes (torchtitan, 8 and 128 H100; "
                   "four published pairs have {:.2f} to {:.2f} %)",
                   100 * loss_per_doubling, 100 * least_loss_published, 100 * most_loss_published)},
      {"program", exchange_text(plan.asked(), ordered)}};
  if (plan.asked().ranks > 1)
    all.push_back({cluster.is_measured()          ? "measured"
                   : cluster.gives("memory_tb_s") ? "file"
                                                  : "assumed",
                   fmt::format("weights are copied at {:.2g} TB/s, {:.3g} of the memory's {:.3g}, as on one H200{}",
                               copy_bytes_per_s(cluster) / 1e12, copy_share, cluster.memory_tb_s,
                               cluster.gives("memory_tb_s") ? in_file(cluster) : "")});
  all.push_back({"published", law_text(setup.train)});
  if (cluster.memory_gb)
    all.push_back({cluster.file.empty() ? "data sheet" : "file",
                   fmt::format("{} GB of memory a GPU{}", amount_text(*cluster.memory_gb), in_file(cluster))});
  return all;
}

std::vector<std::string> warnings_of(const ScalePlan& plan, const Setup& setup, bool ordered) {
  const RankPlan& asked = plan.asked();
  const std::int64_t parameters = count_parameters(setup.model).total;
  std::vector<std::string> warnings;
  if (does_not_fit(plan, asked)) warnings.push_back(memory_warning(asked, *plan.cluster.memory_gb));
  if (plan.cluster.nic_gb_s > plan.cluster.link_gb_s) warnings.push_back(cluster_warning(plan.cluster));
  if (const double share = share_of_peak(plan.cluster, setup); share > 1)
    warnings.push_back(peak_warning(plan.cluster, share));
  if (const TimedStep timed = smallest_timed_step(setup);
      !plan.cluster.tokens_per_s && step_flops(setup) <= small_step * timed.flops)
    warnings.push_back(step_warning(setup, timed));
  if (probes_much(plan)) warnings.push_back(probes_text(plan));
  if (static_cast<double>(asked.tokens_per_update) > plan.critical_batch)
    warnings.push_back(batch_warning(plan, setup.train));
  if (asked.updates < few_updates) warnings.push_back(updates_warning(asked, setup.train));
  if (asked.ranks > 1 && asked.shares.padded_elements() > much_padding * static_cast<double>(parameters))
    warnings.push_back(padding_warning(asked, parameters));
  if (const double share = asked.exchange() * asked.straggler / asked.update_seconds(); share > much_exchange)
    warnings.push_back(exchange_warning(plan, setup.train, ordered, share));
  return warnings;
}

std::vector<std::string> actions_of(const ScalePlan& plan, const Setup& setup) {
  const RankPlan& asked = plan.asked();
  std::vector<std::string> actions;
  if (asked.accumulation != setup.train.accumulation) actions.push_back(shared_out_note(asked, setup.train));
  if (const std::int64_t last = asked.ranks % plan.cluster.gpus_per_node; asked.nodes > 1 && last != 0)
    actions.push_back(
        fmt::format("the last of {} has {} of its {} GPUs at work: the rings between nodes have as many NICs",
                    counted(asked.nodes, "node"), last, plan.cluster.gpus_per_node));
  if (plan.speed.is_assumed) actions.push_back(speed_note(setup));
  if (setup.device == "cpu") actions.emplace_back("device=cpu does not count: the plan is for GPUs, in bfloat16");
  if (std::ranges::any_of(plan.rows, has_no_update))
    actions.emplace_back("a row with - has no update: train.tokens are less than one; such a run is refused");
  if (std::ranges::any_of(plan.rows, [&](const RankPlan& row) { return does_not_fit(plan, row); }))
    actions.push_back(fmt::format("a row with * does not fit the GPU's {} GB", amount_text(*plan.cluster.memory_gb)));
  if (!has_equal_updates(plan))
    actions.push_back(
        "the rows of the table are different trainings: their updates have different numbers of tokens. The table "
        "compares the speed of updates, not the time to a loss. 'A GPU against one' compares a rank with one GPU whose "
        "updates have as many tokens as those of the row" +
        other_runs_text(plan, setup.train) + equal_rows_text(plan, setup.train));
  return actions;
}

std::vector<std::string> notes_of(const ScalePlan& plan) {
  std::vector<std::string> notes = {
      "this is a calculation: headscope itself was not run on several GPUs",
      "time and tokens/s are of updates alone. Not in them: probes, checkpoints and measurements, which rank 0 makes "
      "while the others wait, reading data, and starting"};
  if (plan.probes > 0 && !probes_much(plan)) notes.push_back(probes_text(plan));
  return notes;
}

}  // namespace headscope
