#include <algorithm>
#include <cmath>

#include "command.h"
#include "core/error.h"
#include "core/lists.h"
#include "core/text.h"
#include "plasticity/run.h"
#include "stats/sample_moments.h"
#include "torch_half.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

struct PlasticityFlags {
  PlasticityJob job;
  std::filesystem::path config;
  std::vector<ConfigEntry> entries;  // from flags and --set
  std::vector<std::string> texts;    // of a model that is captured first
  std::vector<ConfigEntry> capture;  // how, from flags
  bool no_figures = false, no_report = false;
  std::shared_ptr<Console> console;
};

// The entries of a configuration that say how a model is captured: those of an earlier run, for example. Flags win.
void take_capture_entries(PlasticityFlags& flags, std::vector<ConfigEntry>& entries) {
  const std::string prefix = fmt::format("{}.", capture_key);
  std::vector<ConfigEntry> of_capture;
  for (ConfigEntry entry : entries) {
    if (!entry.key.starts_with(prefix)) continue;
    entry.key.erase(0, prefix.size());
    if (entry.key == "model" && flags.job.data.empty()) flags.job.data = entry.value;
    if (entry.key == "data" && flags.texts.empty()) flags.texts = comma_separated(entry.value);
    if (!is_capture_input(entry)) of_capture.push_back(entry);
  }
  flags.capture.insert(flags.capture.begin(), of_capture.begin(), of_capture.end());
  std::erase_if(entries, [&](const ConfigEntry& entry) { return entry.key.starts_with(prefix); });
}

// Where text is given, DATA is a model: its queries and keys are captured first. A run that is gone on with says how.
void capture_first(PlasticityFlags& flags, ResumedRun& run) {
  PlasticityJob& job = flags.job;
  CaptureInputs inputs{job.data.string(), flags.texts};
  ResumedRun captured{.manifest = {}, .entries = {}, .free_keys = {"device"}};
  if (!run.manifest.is_null() && run.manifest["config"].contains(capture_key)) {
    const ordered_json& config = run.manifest["config"][capture_key];
    captured.manifest = run.manifest;
    add_resumed_inputs(config, inputs);
    const std::string prefix = fmt::format("{}.", capture_key);
    for (ConfigEntry entry : run.entries) {
      if (!entry.key.starts_with(prefix)) continue;
      entry.key.erase(0, prefix.size());
      if (!is_capture_input(entry)) captured.entries.push_back(entry);
    }
    std::erase_if(run.entries, [&](const ConfigEntry& entry) { return entry.key.starts_with(prefix); });
  } else if (flags.texts.empty() && flags.capture.empty()) {
    return;  // DATA is a folder of captured vectors
  }
  if (inputs.model.empty()) fail_input("no model: name the one that reads the text of --data");
  for (const ConfigEntry& entry : flags.entries)
    if (entry.key == "layers") flags.capture.push_back(entry);  // no other is needed
  const CaptureOptions options = options_over<CaptureOptions>(captured, flags.capture, resolve_options<CaptureOptions>);
  const CapturePlan plan = torch_half().describe_capture(inputs, options);
  job.data.clear();
  job.model = CaptureFirst{.title = plan.title,
                           .layers = plan.layers,
                           .q_heads = plan.heads,
                           .k_heads = plan.key_heads,
                           .rope = plan.rope,
                           .config = plan.config,
                           .capture = [inputs, options, console = flags.console](const auto& folder, const auto& hint) {
                             torch_half().capture_data(inputs, options, folder, hint, *console);
                           }};
}

// The run that is gone on with over defaults, the file over that, flags over the file.
PlasticityOptions options_of(PlasticityFlags& flags, Console& console) {
  std::vector<ConfigEntry> entries;
  std::vector<std::string> ignored;
  if (!flags.config.empty()) entries = read_plasticity_config(flags.config, ignored);
  for (const std::string& key : ignored)
    console.warn(fmt::format("{}: '{}' is ignored: nothing is downloaded", flags.config.string(), key));
  entries.insert(entries.end(), flags.entries.begin(), flags.entries.end());
  take_capture_entries(flags, entries);
  ResumedRun run =
      resumed_run(flags.job.folder, plasticity_command, RunWrites::as_it_goes, {"dataset_local_root", "max_workers"});
  if (!flags.job.data.empty() || flags.job.demo) run.missing.clear();  // there is something to start with
  capture_first(flags, run);
  if (text_at(run.manifest, heads_from) != heads_from_configuration)  // they were found: look again
    std::erase_if(run.entries, [](const ConfigEntry& entry) { return entry.key.starts_with("num_"); });
  return options_over<PlasticityOptions>(run, entries, resolve_options<PlasticityOptions>);
}

// The data of a demonstration lie in its run.
bool is_of_the_demo(const PlasticityJob& job) {
  const PlasticityOptions& options = job.options;
  return job.data.empty() && !job.model && options.model_dir == own_data_name &&
         options.dataset_local_root == absolute_folder(job.folder.out);
}

std::string run_name(const PlasticityJob& job) {
  if (job.demo) return "plasticity-demo";
  if (job.model) return "plasticity-" + folder_name(text_at(job.model->config, "model"));
  const PlasticityOptions& options = job.options;
  if (!job.data.empty()) return "plasticity-" + folder_name(job.data);
  const std::string& named = options.model_dir.empty() ? options.dataset_local_root : options.model_dir;
  if (named.empty())
    fail_input(
        "no data: give the folder that holds l00h00q/data.parquet, or --demo (see 'headscope plasticity --help')");
  return "plasticity-" + folder_name(named);
}

ordered_json head_json(const HeadResult& head) {
  return {{"layer", head.id.layer},
          {"q_head", head.id.q_head},
          {"k_head", head.id.k_head},
          {"ap_overall", head.ap_overall}};
}

Error failure_of(const PlasticityOutcome& outcome) {
  return {Fault::runtime, failures_text(outcome)};
}

void print_json(const PlasticityOutcome& outcome) {
  const PlasticityResult& result = outcome.result;
  ordered_json object = {{"out", outcome.out.string()},
                         {"status", result.failures.empty() ? "complete" : "incomplete"},
                         {"rope", outcome.rope},
                         {"heads", result.heads.size()},
                         {"failed", failures_json(result)}};
  if (const auto range = range_of(result.heads))
    object["ap_overall"] = {{"mean", range->mean},
                            {"median", range->median},
                            {"lowest", head_json(*range->lowest)},
                            {"highest", head_json(*range->highest)}};
  for (const DemoRow& row : outcome.demo)
    object["demo"].push_back({{"head", row.id.name()},
                              {"truth", row.truth},
                              {"estimate", row.estimate.value},
                              {"se", row.estimate.standard_error()}});
  if (!result.failures.empty()) object.update(to_json(failure_of(outcome)));
  object["seconds"] = outcome.seconds;
  object["stages"] = outcome.already_complete ? ordered_json() : stages_json(result);
  fmt::print("{}", json_text(object));
}

// "L3H5"
std::string query_head(const HeadId& id) {
  return fmt::format("L{}H{}", id.layer, id.q_head);
}

// "L3H5 0.412 (standard error 0.013)"; an error that three digits do not show has more.
std::string with_error(const HeadResult& head) {
  const double error = head.uncertainty.overall.standard_error();
  const std::string text = error < 0.0005 ? fmt::format("{:.1g}", error) : fixed_text(error, 3);
  return fmt::format("{} {} (standard error {})", query_head(head.id), fixed_text(head.ap_overall, 3), text);
}

void print_demo(const std::vector<DemoRow>& rows) {
  fmt::print("\n  head     truth   estimate  std. error  difference / error\n");
  for (const DemoRow& row : rows) {
    const double error = row.estimate.standard_error();
    fmt::print("  {:<6}  {:.4f}  {:.4f}    {:.4f}      {}\n", query_head(row.id), row.truth, row.estimate.value, error,
               signed_text((row.estimate.value - row.truth) / error, 2));
  }
  fmt::print("\n");
}

// What the model is off by where queries are counted instead, and how much the checks by text rest on.
void print_checks(const PlasticityResult& result) {
  std::vector<double> gaps, own_queries;
  const HeadResult* farthest = nullptr;
  for (const HeadResult& head : result.heads) {
    if (std::isnan(head.checks.ap_gap)) continue;
    gaps.push_back(std::abs(head.checks.ap_gap));
    if (!std::isnan(head.checks.own_text_queries)) own_queries.push_back(head.checks.own_text_queries);
    if (farthest == nullptr || std::abs(head.checks.ap_gap) > std::abs(farthest->checks.ap_gap)) farthest = &head;
  }
  if (farthest == nullptr) return;
  fmt::print("  model against count: median difference {:.3f}, largest {} {}\n", median(gaps), query_head(farthest->id),
             signed_text(farthest->checks.ap_gap, 3));
  if (own_queries.empty() || median(own_queries) < 2)
    fmt::print(
        "  the check by text says nothing here: a text has fewer than two queries in a bucket (capture with a larger "
        "--base-rate)\n");
}

void print_text(const PlasticityOutcome& outcome) {
  if (outcome.already_complete) {
    fmt::print("{} is complete; nothing is left to do\n", visible(outcome.out));
    return;
  }
  const PlasticityResult& result = outcome.result;
  if (result.heads.empty()) return;  // the error says it all
  fmt::print("attention plasticity (0 fixed choice, 1 coin flip), variant {}, queries and keys {}: {} heads in {}\n",
             json_value(result.options.variant).get<std::string>(),
             outcome.rope == "unknown" ? "before or after RoPE (the data do not say)" : outcome.rope + " RoPE",
             result.heads.size(), format_duration(outcome.seconds));
  if (const auto range = range_of(result.heads))
    fmt::print("  mean {:.3f}, median {:.3f}, lowest {}, highest {}\n", range->mean, range->median,
               with_error(*range->lowest), with_error(*range->highest));
  print_checks(result);
  if (!outcome.demo.empty()) print_demo(outcome.demo);
  fmt::print("{}: {}\n", outcome.has_figures ? "tables and figures" : "tables", visible(outcome.out));
}

int print(const PlasticityOutcome& outcome, bool no_report, const CommonFlags& common, Console& console) {
  if (common.json)
    print_json(outcome);
  else if (!common.console.quiet)
    print_text(outcome);
  const bool has_heads = !outcome.result.heads.empty();
  finish_with_report(outcome.out, no_report || !has_heads, common);
  if (outcome.result.failures.empty()) return 0;
  const Error failure = failure_of(outcome);
  console.error(failure.what());
  return failure.exit_code();
}

void print(const CompareOutcome& outcome, const CommonFlags& common) {
  const auto& [name_1, name_2, heads, only_in_one] = outcome.comparison;
  const auto significant = std::count_if(heads.begin(), heads.end(), [](const auto& head) { return head.significant; });
  if (common.json) {
    fmt::print("{}", json_text(ordered_json{{"out", outcome.out.string()},
                                            {"heads", heads.size()},
                                            {"significant", significant},
                                            {"only_in_one", only_in_one}}));
  } else if (!common.console.quiet) {
    const HeadDifference& largest = *std::max_element(heads.begin(), heads.end(), [](const auto& a, const auto& b) {
      return std::abs(a.difference) < std::abs(b.difference);
    });
    fmt::print("{} heads compared{}: {} differ (false discovery rate 5 %)\n", heads.size(),
               only_in_one > 0 ? fmt::format(" ({} are in one run only)", only_in_one) : "", significant);
    fmt::print("  largest difference: {} {} (95 % interval {} to {})\n", query_head(largest.id),
               signed_text(largest.difference, 3), signed_text(largest.low, 3), signed_text(largest.high, 3));
    fmt::print("table and figures: {}\n", visible(outcome.out));
  }
}

void add_compare(CLI::App& plasticity, CommonFlags& common, Command& chosen) {
  auto job = std::make_shared<CompareJob>();
  auto* command = plasticity.add_subcommand("compare", "Difference of two runs, head by head");
  command->add_option("run1", job->run_1, "The first run folder")->type_name("RUN1");
  command->add_option("run2", job->run_2, "The second run folder")->type_name("RUN2");
  command->add_option("--theme", job->theme, "light or dark [light]")->type_name("NAME");
  add_out_flags(*command, job->folder);
  add_common_flags(*command, common);
  when_chosen(*command, chosen, [job, &common] {
    if (const auto manifest = manifest_to_resume(job->folder, compare_command, RunWrites::at_the_end);
        manifest && job->run_1.empty()) {
      job->run_1 = text_at(manifest->at("config"), "run_1");
      job->run_2 = text_at(manifest->at("config"), "run_2");
    }
    if (job->run_1.empty() || job->run_2.empty())
      fail_input("two run folders are needed: plasticity compare RUN1 RUN2");
    choose_out(job->folder, common, "plasticity-compare");
    const CompareOutcome outcome = run_comparison(*job);
    if (!outcome.differ.empty())
      Console(common.console)
          .warn(fmt::format("the runs differ in more than their heads: {}", fmt::join(outcome.differ, "; ")));
    print(outcome, common);
    return 0;
  });
}

}  // namespace

void add_plasticity(CLI::App& app, CommonFlags& common, Command& chosen) {
  auto flags = std::make_shared<PlasticityFlags>();
  auto* command = app.add_subcommand("plasticity", "Attention plasticity from captured queries and keys");
  command
      ->add_option("data", flags->job.data,
                   "Folder with l00h00q/data.parquet, l00h00k/data.parquet, ...; with --data a model or run, which is "
                   "captured first")
      ->type_name("DATA|MODEL");
  add_capture_flags(*command, flags->texts, flags->capture);
  command->add_option("--config", flags->config, "YAML configuration; flags override it")->type_name("FILE");
  command->add_flag("--demo", flags->job.demo, "Analyse a made-up dataset whose plasticity is known");
  command->add_flag("--fail-fast", flags->job.fail_fast, "Stop at the first head that cannot be analysed");
  command->add_flag("--no-figures", flags->no_figures, "Write the tables only");
  command->add_flag("--per-head", flags->job.per_head_figures, "Bucket heat maps of every head, too");
  command->add_option("--theme", flags->job.theme, "Figures: light or dark [light]")->type_name("NAME");
  add_report_flag(*command, flags->no_report);
  add_out_flags(*command, flags->job.folder);
  add_option_flags(*command, PlasticityOptions{}, flags->entries);
  add_common_flags(*command, common);
  add_compare(*command, common, chosen);
  command->callback([command, flags, &common, &chosen] {
    if (!command->get_subcommands().empty()) return;
    chosen = [flags, &common] {
      flags->console = std::make_shared<Console>(common.console);
      Console& console = *flags->console;
      PlasticityJob& job = flags->job;
      job.options = options_of(*flags, console);
      job.demo = job.demo || (job.folder.resume && is_of_the_demo(job));
      job.figures = !flags->no_figures;
      choose_out(job.folder, common, run_name(job));
      const bool no_report = flags->no_report || stays_as_it_is(job.folder);
      return print(run_plasticity(job, console), no_report, common, console);
    };
  });
}

}  // namespace headscope
