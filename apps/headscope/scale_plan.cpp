#include "scale_plan.h"

#include <algorithm>

#include "core/text.h"
#include "figures/theme.h"
#include "plan/plan.h"
#include "plan/plan_text.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

// Of the terminal, within limits; a file gets the larger one.
std::size_t width_of_lines() {
  constexpr std::size_t least = 60, most = 110;
  const std::optional<TerminalSize> terminal = terminal_size(stdout);
  return terminal ? std::clamp(terminal->columns, least, most) : most;
}
constexpr double mebi = 1 << 20, giga = 1e9;

// A whole number, as far as JSON readers have it exactly.
ordered_json whole(double number) {
  return number < 9e15 ? ordered_json(static_cast<std::int64_t>(number)) : ordered_json(number);
}

ordered_json json_of(const ProcessMemory& memory) {
  return {{"weights", memory.weights / mebi},     {"copies", memory.copies / mebi},
          {"gradients", memory.gradients / mebi}, {"exchanged", memory.exchanged / mebi},
          {"state", memory.state / mebi},         {"working", memory.working / mebi},
          {"program", memory.program / mebi}};
}

ordered_json json_of(const RankPlan& row) {
  return {{"ranks", row.ranks},
          {"nodes", row.nodes},
          {"accumulation", row.accumulation},
          {"tokens_per_update", row.tokens_per_update},
          {"updates", row.updates},
          {"memory_mb", row.memory.total() / mebi},
          {"bytes_per_update", whole(row.traffic_bytes)},
          {"tokens_per_s", row.tokens_per_s()},
          {"tokens_per_s_overlapped", row.overlapped_tokens_per_s()},
          {"per_gpu", row.per_gpu()},
          {"hours", row.updates == 0 ? ordered_json() : ordered_json(row.run_seconds() / 3600)},
          {"gpu_hours", row.updates == 0 ? ordered_json() : ordered_json(row.gpu_hours())},
          {"update_seconds",
           {{"pass", row.pass},
            {"optimizer", row.optimizer},
            {"gradients", row.reduce},
            {"weights", row.gather},
            {"numbers", row.numbers},
            {"copies", row.copying},
            {"straggler_factor", row.straggler},
            {"all", row.update_seconds()}}}};
}

ordered_json json_of(const Cluster& cluster) {
  return {{"name", cluster.name},
          {"file", cluster.file.empty() ? ordered_json() : ordered_json(cluster.file)},
          {"gpus_per_node", cluster.gpus_per_node},
          {"link_gb_s", cluster.link_gb_s},
          {"nic_gb_s", cluster.nic_gb_s},
          {"tokens_per_s", json_value(cluster.tokens_per_s)},
          {"memory_gb", json_value(cluster.memory_gb)},
          {"memory_tb_s", cluster.memory_tb_s},
          {"peak_tflops", cluster.peak_tflops}};
}

ordered_json json_of(const ScalePlan& plan, const Setup& setup, const PlannedRuns& runs) {
  const RankPlan& asked = plan.asked();
  ordered_json object = {{"preset", setup.preset}, {"cluster", json_of(plan.cluster)}};
  object["parameters"] = count_parameters(setup.model).total;
  object["runs"] = runs.runs;
  object["tokens"] = asked.run_tokens();
  object.update(json_of(asked));
  object["tokens_per_s_low"] = plan.tokens_per_s_low;
  object["tokens_per_s_high"] = plan.tokens_per_s_high;
  object["gpu_hours_with_probes"] = json_value(plan.gpu_hours_with_probes());
  object["memory"] = json_of(asked.memory);
  object["fits"] = plan.fits() ? ordered_json(*plan.fits()) : ordered_json();
  object["exchanged_elements"] = whole(asked.shares.padded_elements());
  object["layer_pieces"] = asked.shares.layer_pieces;
  object["ranks_without_matrix"] = asked.shares.without_matrix;
  object["critical_batch"] = plan.critical_batch;
  object["useful_ranks"] = plan.useful_ranks;
  for (const RankPlan& row : plan.rows) object["rows"].push_back(json_of(row));
  if (!runs.of.empty()) {
    const ManyRuns many = plan_runs(plan, runs.runs);
    object["study"] = {
        {"rounds", many.rounds},
        {"side_by_side_hours", many.side_by_side / 3600},
        {"side_by_side_gpu_hours", many.gpu_hours},
        {"side_by_side_fits", plan.fits(plan.one()) ? ordered_json(*plan.fits(plan.one())) : ordered_json()},
        {"one_after_another_hours", many.one_after_another / 3600}};
  }
  for (const Assumption& assumption : plan.assumptions)
    object["assumptions"].push_back({{"origin", assumption.origin}, {"text", assumption.text}});
  object["notes"] = plan.actions;
  for (const std::string& note : plan.notes) object["notes"].push_back(note);
  object["warnings"] = plan.warnings;
  return object;
}

std::string gigabytes_text(double bytes) {
  const double count = bytes / giga;
  return count < 1000 ? fmt::format("{:.{}f}", count, count < 9.995 ? 2 : 1)
                      : with_separators(static_cast<std::int64_t>(count));
}

// A line "  name        text", wrapped behind the name.
void print_line(const std::string& name, const std::string& text) {
  fmt::print("  {:<12}{}\n", name, wrapped(text, width_of_lines(), /*indent=*/14, /*column=*/14));
}

void print_lines(const std::string& name, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) print_line(name, text);
}

void print_table(const ScalePlan& plan) {
  constexpr const char* line = "  {:>9} {:>9} {:>10} {:>9} {:>10} {:>9} {:>10} {:>12}\n";
  fmt::print("\n");
  fmt::print(fmt::runtime(line), "", "tokens", "tokens/s", "a GPU", "with", "GB sent", "GB", "time");
  fmt::print(fmt::runtime(line), "", "an", "of all", "against", "gradients", "a rank and", "memory", "of the");
  fmt::print(fmt::runtime(line), "ranks", "update", "ranks", "one", "hidden", "update", "a rank", "updates");
  for (const RankPlan& row : plan.rows) {
    const auto of_run = [&](const std::string& text) { return has_no_update(row) ? "-" : text; };
    fmt::print(fmt::runtime(line), with_separators(row.ranks), short_count(static_cast<double>(row.tokens_per_update)),
               of_run(short_count(row.tokens_per_s())), of_run(fmt::format("{:.2f}", row.per_gpu())),
               of_run(short_count(row.overlapped_tokens_per_s())), gigabytes_text(row.traffic_bytes),
               gigabytes_text(row.memory.total()) + (does_not_fit(plan, row) ? "*" : ""),
               of_run(format_duration(row.run_seconds())));
  }
  fmt::print("\n");
}

void print_study(const ScalePlan& plan, const PlannedRuns& runs) {
  const ManyRuns many = plan_runs(plan, runs.runs);
  const std::int64_t gpus = plan.asked().ranks;
  const std::int64_t idle = std::max<std::int64_t>(0, gpus - runs.runs);
  print_line("study", fmt::format("{} runs side by side, {} at once, a GPU each: {} in all, {}{}; nothing is exchanged",
                                  with_separators(runs.runs), with_separators(std::min(runs.runs, gpus)),
                                  format_duration(many.side_by_side), gpu_time(many.gpu_hours),
                                  idle == 0 ? "" : fmt::format(", {} idle", counted(idle, "GPU"))));
  if (gpus > 1 && plan.fits(plan.one()))
    print_line(
        *plan.fits(plan.one()) ? "" : "warning",
        fmt::format("each of them takes {} GB of its GPU: {} its {} GB", gigabytes_text(plan.one().memory.total()),
                    *plan.fits(plan.one()) ? "fits" : "does not fit", amount_text(*plan.cluster.memory_gb)));
  if (gpus > 1)
    print_line("instead", fmt::format("one run after another, each on {} ranks: {} in all; {}", with_separators(gpus),
                                      plan.asked().updates == 0 ? "-" : format_duration(many.one_after_another),
                                      plan.asked().updates == plan.one().updates
                                          ? "as many updates as on one"
                                          : fmt::format("another training: {} of {} tokens, not {}",
                                                        counted(plan.asked().updates, "update"),
                                                        with_separators(plan.asked().tokens_per_update),
                                                        with_separators(plan.one().updates))));
  print_line("how", "side by side: 'study --devices all' on a machine, the same command as Slurm tasks on several");
  if (gpus > 1)
    print_line("", "on ranks: only 'train' has them, one command for each condition and seed; it gives no verdict");
  fmt::print("\n");
}

std::string gpu_hours_text(const ScalePlan& plan) {
  const auto with_probes = plan.gpu_hours_with_probes();
  return gpu_time(plan.asked().gpu_hours()) +
         (with_probes ? fmt::format(", about {} with probes", gpu_time(*with_probes)) : " of updates");
}

void print_plan(const ScalePlan& plan, const Setup& setup, const PlannedRuns& runs) {
  const RankPlan& asked = plan.asked();
  const ParameterCounts parameters = count_parameters(setup.model);
  print_line("preset", fmt::format("{}: {} parameters ({} in the layers' matrices)", setup.preset,
                                   parameters_text(parameters.total), parameters_text(parameters.matrices)));
  if (!runs.of.empty()) print_line("runs", fmt::format("{} ({})", with_separators(runs.runs), runs.of));
  print_line(runs.of.empty() ? "plan" : "one run",
             fmt::format("{} on {} of {}, {} in {}{}", counted(asked.ranks, "rank"), counted(asked.nodes, "node"),
                         plan.cluster.name, tokens_text(asked.run_tokens()), counted(asked.updates, "update"),
                         has_no_update(asked) ? "" : ", " + gpu_hours_text(plan)));
  Setup planned = setup;
  planned.train.accumulation = asked.accumulation;
  if (has_no_update(asked)) planned.train.tokens = 0;  // a warning says it
  print_lines("note", notices(planned));
  if (plan.fits())
    print_line("memory", fmt::format("{} GB a rank: {} the GPU's {} GB", gigabytes_text(asked.memory.total()),
                                     *plan.fits() ? "fits" : "does not fit", amount_text(*plan.cluster.memory_gb)));
  print_table(plan);
  if (!runs.of.empty()) print_study(plan, runs);
  if (asked.ranks > 1 && !has_no_update(asked)) print_line("range", range_text(plan));
  print_lines("warning", plan.warnings);
  print_lines("note", plan.actions);
  fmt::print("\n");
  for (const Assumption& assumption : plan.assumptions) print_line(assumption.origin, assumption.text);
  fmt::print("\n");
  print_lines("note", plan.notes);
}

}  // namespace

void add_cluster_flag(CLI::App& command, PlanFlags& flags) {
  command
      .add_option_function<std::string>(
          "--cluster", [&flags](const std::string& text) { flags.cluster = text; },
          "With --dry-run: what is planned for; h200x8, h100x8, or a file with gpus_per_node, link_gb_s, nic_gb_s, "
          "tokens_per_s (of one GPU) [h200x8]")
      ->type_name("NAME|FILE");
}

int plan_ranks(const Setup& setup, RanksReduce reduce, const PlanFlags& flags, const std::string& theme,
               const PlannedRuns& runs, const CommonFlags& common) {
  theme_named(theme);
  const Cluster cluster = cluster_of(flags.cluster.value_or("h200x8"));
  const std::int64_t ranks = flags.ranks.value_or(cluster.gpus_per_node);  // a node
  check_size("--ranks", ranks, 1, most_ranks);
  check_corpus_for(setup);
  const ScalePlan plan = compute_plan(setup, reduce, ranks, cluster);
  if (common.json)
    fmt::print("{}", json_text(json_of(plan, setup, runs)));
  else
    print_plan(plan, setup, runs);
  return 0;
}

}  // namespace headscope
