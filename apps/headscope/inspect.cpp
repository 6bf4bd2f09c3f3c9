#include <unistd.h>

#include "command.h"
#include "core/lists.h"
#include "core/text.h"
#include "heads/terminal_map.h"
#include "torch_half.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

struct InspectFlags {
  InspectOptions options;
  std::string show;  // comma-separated; empty: see shown_metrics
  RunFolderOptions folder;
};

// {metric: [layer][head]}
ordered_json heads_json(const Tracks& tracks) {
  ordered_json object = ordered_json::object();
  for (const Metric& metric : head_metrics()) {
    if (!tracks.has(metric.name)) continue;
    ordered_json& layers = object[std::string(metric.name)] = ordered_json::array();
    for (std::int64_t layer = 0; layer < tracks.counts.layers; ++layer) {
      const auto values = tracks.at(metric.name, 0, layer, layer);
      layers.push_back(std::vector<double>(values.begin(), values.end()));
    }
  }
  return object;
}

ordered_json json_of(const Inspection& inspection, const std::filesystem::path& out) {
  return {{"out", out.string()},
          {"checkpoint", inspection.checkpoint},
          {"architecture", inspection.architecture},
          {"step", inspection.moment.step},
          {"tokens", inspection.moment.tokens},
          {"val_loss", inspection.val_loss},
          {"findings", inspection.summary.findings ? to_json(*inspection.summary.findings) : ordered_json()},
          {"roles", inspection.summary.roles ? to_json(*inspection.summary.roles) : ordered_json()},
          {"heads", heads_json(inspection.tracks.probe)},
          {"device", inspection.device}};
}

// The metrics asked for; otherwise the sharpness of attention, or the first that is measured.
std::vector<const Metric*> shown_metrics(const InspectFlags& flags) {
  const MetricSelection chosen(flags.options.metrics, "--track");
  std::vector<const Metric*> shown;
  for (const std::string& name :
       comma_separated(flags.show.empty() && chosen.has("entropy_norm") ? "entropy_norm" : flags.show)) {
    if (name.empty()) continue;
    const Metric& asked = metric_named(name, "--show");
    if (!chosen.has(asked.name))
      fail_input("--show {}: is not among --track {}; add it there", name, flags.options.metrics);
    shown.push_back(&asked);
  }
  if (!shown.empty()) return shown;
  const auto first = std::ranges::find_if(head_metrics(), [&](const Metric& one) { return chosen.has(one.name); });
  if (first == head_metrics().end())
    fail_input("--track {}: measures nothing of heads; add a metric of theirs", flags.options.metrics);
  return {&*first};
}

// An inspection that is gone on with: of the same checkpoint, on the same data.
void add_resumed(InspectFlags& flags) {
  const ResumedRun run = resumed_run(flags.folder, inspect_command, RunWrites::at_the_end);
  InspectOptions& options = flags.options;
  if (!run.manifest.is_null() && options.checkpoint.empty()) {
    const ordered_json& config = run.manifest["config"];
    options.checkpoint = text_at(config, "checkpoint");
    if (options.metrics == "all") options.metrics = text_at(config.value("track", ordered_json()), "metrics", "all");
    std::vector<ConfigEntry> changes;
    for (const ConfigEntry& entry : run.entries)
      if (std::ranges::find(changeable_keys, entry.key) != changeable_keys.end()) changes.push_back(entry);
    options.changes.insert(options.changes.begin(), changes.begin(), changes.end());
  }
  if (options.checkpoint.empty() && !run.missing.empty()) fail_nothing_to_resume(run.missing);
  if (options.checkpoint.empty()) fail_input("no checkpoint: give RUN/checkpoints/step-N, or RUN for its newest one");
}

int inspect_command_line(InspectFlags& flags, const CommonFlags& common) {
  Console console(common.console);
  add_resumed(flags);
  const std::vector<const Metric*> shown = shown_metrics(flags);
  InspectJob job{flags.options, flags.folder};
  choose_out(job.folder, common, "inspect");
  check_out(job.folder, inspect_command, RunWrites::at_the_end);
  const Inspection inspection = torch_half().inspect(job, console, {});
  if (common.json) {
    fmt::print("{}", json_text(json_of(inspection, job.folder.out)));
  } else if (!common.console.quiet) {
    const std::string of = inspection.architecture.empty() ? fmt::format("step {}, {}", inspection.moment.step,
                                                                         tokens_text(inspection.moment.tokens))
                                                           : fmt::format("architecture {}", inspection.architecture);
    fmt::print("{}: {}; validation loss {:.3f} nats on {}\n\n", visible(inspection.checkpoint), of, inspection.val_loss,
               inspection.source);
    for (const Metric* metric : shown)
      fmt::print("{}\n", terminal_map(inspection.tracks.probe, 0, *metric, ::isatty(STDOUT_FILENO) == 1, 100));
    fmt::print("tables (heads.parquet, layers.parquet, gamma.parquet) and summary.md: {}\n", visible(job.folder.out));
  }
  return 0;
}

}  // namespace

void add_inspect(CLI::App& app, CommonFlags& common, Command& chosen) {
  auto flags = std::make_shared<InspectFlags>();
  auto* command = app.add_subcommand("inspect", "Measure every head of a checkpoint");
  InspectOptions& options = flags->options;
  command->add_option("checkpoint", options.checkpoint, "RUN/checkpoints/step-N, or RUN for the newest")
      ->type_name("CHECKPOINT");
  add_key_flag(*command, options.changes, "--data", "data.path", "PATH",
               "Text or token file, or a folder [what the model was trained on]");
  add_key_flag(*command, options.changes, "--tokenizer", "data.tokenizer", "PATH",
               "Of text: bytes, a tokenizer.json, or the folder of a model that holds one [the model's own]");
  add_key_flag(*command, options.changes, "--batch", "train.batch", "N", "Sequences [as in training]");
  add_key_flag(*command, options.changes, "--seq-len", "train.seq_len", "N", "Tokens of a sequence [as in training]");
  add_set_flag(*command, options.changes, "Any key of data.*, or train.batch, train.seq_len, train.validation_batches");
  command->add_option("--track", options.metrics, "Groups and names of metrics [all]")->type_name("METRIC,METRIC");
  command->add_option("--show", flags->show, "The metrics that maps show [entropy_norm, or the first of --track]")
      ->type_name("METRIC,METRIC");
  command->add_option("--device", options.device, "auto, cpu or cuda [auto]")->type_name("NAME");
  add_out_flags(*command, flags->folder);
  add_common_flags(*command, common);
  when_chosen(*command, chosen, [flags, &common] { return inspect_command_line(*flags, common); });
}

}  // namespace headscope
