#include <unistd.h>

#include "command.h"
#include "core/lists.h"
#include "core/text.h"
#include "heads/ranking.h"
#include "heads/terminal_map.h"
#include "torch_half.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

struct InspectFlags {
  InspectOptions options;
  std::string show;  // comma-separated; empty: see shown_metrics
  RunFolderOptions folder;
  bool no_report = false;
};

// At the last moment: {metric: [layer][head]}
ordered_json heads_json(const Tracks& tracks) {
  ordered_json object = ordered_json::object();
  for (const Metric& metric : head_metrics()) {
    if (!tracks.has(metric.name)) continue;
    ordered_json& layers = object[std::string(metric.name)] = ordered_json::array();
    for (std::int64_t layer = 0; layer < tracks.counts.layers; ++layer) {
      const auto values = tracks.at(metric.name, tracks.moments.size() - 1, layer, layer);
      layers.push_back(std::vector<double>(values.begin(), values.end()));
    }
  }
  return object;
}

// The tables of single heads that were asked for.
std::vector<std::string> single_head_tables(const InspectOptions& options) {
  std::vector<std::string> names;
  if (!options.attention.text.empty()) names = {attention_name, tokens_name};
  if (options.examples > 0) names.emplace_back(examples_name);
  return names;
}

// Of several models, what stands beside "models" is of the last.
ordered_json json_of(const Inspection& inspection, const std::filesystem::path& out) {
  ordered_json object = {{"out", out.string()}, {"architecture", inspection.architecture}};
  if (inspection.models.empty()) {  // texts were read, nothing was measured
    object["device"] = inspection.device;
    return object;
  }
  object.update(to_json(inspection.models.back()));
  for (const MeasuredModel& one : inspection.models)
    if (inspection.models.size() > 1) object["models"].push_back(to_json(one));
  object.update({{"findings", inspection.summary.findings ? to_json(*inspection.summary.findings) : ordered_json()},
                 {"roles", inspection.summary.roles ? to_json(*inspection.summary.roles) : ordered_json()},
                 {"heads", heads_json(inspection.tracks.probe)},
                 {"device", inspection.device}});
  return object;
}

// "smollm2: architecture llama; validation loss 3.012 nats on text.jsonl"
std::string headline(const Inspection& inspection) {
  const MeasuredModel& model = inspection.models.back();
  std::vector<std::string> of;
  if (!inspection.architecture.empty()) of.push_back("architecture " + inspection.architecture);
  if (inspection.architecture.empty() || model.moment.step > 0) of.push_back(moment_text(model.moment));
  return fmt::format("{}: {}; validation loss {:.3f} nats on {}\n", visible(model.checkpoint), fmt::join(of, ", "),
                     model.val_loss, visible(inspection.source));
}

// A line for each model: its loss, the mean effective rank of its keys, and how many heads have the measurements that
// roles ask for.
std::string course_table(const Inspection& inspection) {
  const Tracks& tracks = inspection.tracks.probe;
  std::string text = fmt::format("{:>10}{:>10}", "step", "loss"), notes;
  if (tracks.has("k_pr")) text += fmt::format("{:>18}", "effective rank");
  std::vector<std::string> counted;
  for (const char* metric : {"sink", "previous", "induction"}) {
    if (!tracks.has(metric)) continue;
    counted.emplace_back(metric);
    text += fmt::format("{:>12}", metric);
  }
  text += "\n";
  for (std::size_t i = 0; i < inspection.models.size(); ++i) {
    const MeasuredModel& model = inspection.models[i];
    text += fmt::format("{:>10}{:>10.3f}", model.moment.step, model.val_loss);
    if (tracks.has("k_pr")) text += fmt::format("{:>18.1f}", finite_mean(tracks.at("k_pr", i)));
    notes.clear();
    for (const std::string& metric : counted) {
      const Ranking ranking = rank_heads(inspection.tracks, {}, {.by = metric, .step = model.moment.step});
      if (!ranking.role) continue;
      text += fmt::format("{:>12}", ranking.role->heads);
      notes += fmt::format("{}{} {:.2g} or more", notes.empty() ? "" : ", ", metric, ranking.role->least);
    }
    text += "\n";
  }
  if (!notes.empty())
    text += fmt::format("effective rank: mean k_pr; last columns: heads, of {}, that have {}\n",
                        tracks.counts.layers * tracks.counts.query_heads, notes);
  return text;
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
  if (!run.manifest.is_null() && options.checkpoints.empty()) {
    const ordered_json& config = run.manifest["config"];
    if (config.contains("checkpoints")) {
      options.checkpoints = config["checkpoints"].get<std::vector<std::string>>();
      options.steps = config.value("steps", std::vector<std::int64_t>());
    } else if (const std::string one = text_at(config, "checkpoint"); !one.empty()) {
      options.checkpoints = {one};
    }
    if (const ordered_json said = config.value("attention", ordered_json()); said.is_object()) {
      options.attention.text = text_at(said, "text");
      options.attention.tokens = said.value("tokens", options.attention.tokens);
      options.attention.heads = text_at(said, "heads");
    }
    options.examples = config.value("examples", options.examples);
    if (options.metrics == "all") options.metrics = text_at(config.value("track", ordered_json()), "metrics", "all");
    std::vector<ConfigEntry> changes;
    for (const ConfigEntry& entry : run.entries)
      if (std::ranges::find(changeable_keys, entry.key) != changeable_keys.end()) changes.push_back(entry);
    options.changes.insert(options.changes.begin(), changes.begin(), changes.end());
  }
  if (options.checkpoints.empty() && !run.missing.empty()) fail_nothing_to_resume(run.missing);
  if (options.checkpoints.empty())
    fail_input(
        "no checkpoint or model: give RUN/checkpoints/step-N, RUN for its newest checkpoint, or a published model");
}

int inspect_command_line(InspectFlags& flags, const CommonFlags& common) {
  Console console(common.console);
  add_resumed(flags);
  const std::vector<const Metric*> shown = shown_metrics(flags);
  InspectJob job{flags.options, flags.folder};
  choose_out(job.folder, common, "inspect");
  check_out(job.folder, inspect_command, writes_of(job.options));
  const bool no_report = flags.no_report || stays_as_it_is(job.folder);
  const Inspection inspection = torch_half().inspect(job, console, {});
  if (common.json) {
    fmt::print("{}", json_text(json_of(inspection, job.folder.out)));
  } else if (!common.console.quiet && inspection.models.empty()) {
    fmt::print("attention of heads ({}): {}\n", fmt::join(single_head_tables(job.options), ", "),
               visible(job.folder.out));
  } else if (!common.console.quiet) {
    if (inspection.models.size() > 1) fmt::print("{}\n", course_table(inspection));
    fmt::print("{}\n", headline(inspection));
    const Tracks& tracks = inspection.tracks.probe;
    for (const Metric* metric : shown)
      fmt::print("{}\n", terminal_map(tracks, tracks.moments.size() - 1, *metric, ::isatty(STDOUT_FILENO) == 1, 100));
    fmt::print("tables (heads.parquet, layers.parquet{}) and summary.md: {}\n",
               inspection.tracks.gains.empty() ? "" : ", gamma.parquet", visible(job.folder.out));
    if (const auto tables = single_head_tables(job.options); !tables.empty())
      fmt::print("of single heads: {}\n", fmt::join(tables, ", "));
    if (inspection.models.size() > 1)
      fmt::print("figures: {} plot {}\n", called_as(), shell_word(job.folder.out.string()));
  }
  finish_with_report(job.folder.out, no_report, common);
  return 0;
}

}  // namespace

void add_inspect(CLI::App& app, CommonFlags& common, Command& chosen) {
  auto flags = std::make_shared<InspectFlags>();
  auto* command = app.add_subcommand(
      "inspect", "Measure every head of a checkpoint or of a published model, or of several over training");
  InspectOptions& options = flags->options;
  command
      ->add_option("model", options.checkpoints,
                   "RUN/checkpoints/step-N, RUN for the newest, or the folder or GGUF file of a published model; "
                   "several of one model are measured over their steps")
      ->type_name("MODEL");
  command
      ->add_option("--steps", options.steps,
                   "Of several models, in their order [what checkpoints and names say: step1000]")
      ->type_name("N,N")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_key_flag(*command, options.changes, "--data", "data.path", "PATH",
               "Text or token file, or a folder [what the model was trained on]");
  add_key_flag(
      *command, options.changes, "--tokenizer", "data.tokenizer", "PATH",
      "Of text: bytes, a tokenizer.json, the folder of a model that holds one, or a GGUF file [the model's own]");
  add_key_flag(*command, options.changes, "--batch", "train.batch", "N", "Sequences [as in training; 16]");
  add_key_flag(*command, options.changes, "--seq-len", "train.seq_len", "N",
               "Tokens of a sequence [as in training; 256]");
  add_set_flag(*command, options.changes, "Any key of data.*, or train.batch, train.seq_len, train.validation_batches");
  command->add_option("--track", options.metrics, "Groups and names of metrics [all]")->type_name("METRIC,METRIC");
  command->add_option("--show", flags->show, "The metrics that maps show [entropy_norm, or the first of --track]")
      ->type_name("METRIC,METRIC");
  command
      ->add_option("--text", options.attention.text,
                   "Write the attention of heads over this text (.txt, .jsonl; 8 texts at most)")
      ->type_name("FILE");
  add_number_flag(*command, "--tokens", options.attention.tokens, "N", "Of each text of --text, its first ones [128]");
  command
      ->add_option("--attention-heads", options.attention.heads,
                   "For --text, L3H5: head 5 of layer 3 [all; 64 by their roles of a model with more than 256]")
      ->type_name("HEAD,HEAD");
  add_number_flag(*command, "--examples", options.examples, "N",
                  "Of each query head, so many places where it attends [0]");
  command->add_option("--device", options.device, "auto, cpu or cuda (cuda:1: the second GPU) [auto]")
      ->type_name("NAME");
  add_report_flag(*command, flags->no_report);
  add_out_flags(*command, flags->folder);
  add_common_flags(*command, common);
  when_chosen(*command, chosen, [flags, &common] { return inspect_command_line(*flags, common); });
}

}  // namespace headscope
