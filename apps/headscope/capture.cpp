#include "capture/options.h"
#include "command.h"
#include "core/lists.h"
#include "core/text.h"
#include "torch_half.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

struct CaptureFlags {
  CaptureJob job;
  std::filesystem::path config;
  std::vector<ConfigEntry> entries;  // from flags and --set
};

// A capture that is gone on with has its model, its data and its options; flags may repeat them.
void resolve(CaptureFlags& flags) {
  CaptureInputs& inputs = flags.job.inputs;
  ResumedRun run = resumed_run(flags.job.folder, capture_command, RunWrites::as_it_goes, {"device"});
  if (!inputs.model.empty()) run.missing.clear();  // there is something to start with
  if (!run.manifest.is_null()) {
    add_resumed_inputs(run.manifest["config"], inputs);
    std::erase_if(run.entries, is_capture_input);
  }
  std::vector<ConfigEntry> entries = all_entries(flags.config, flags.entries);
  for (const ConfigEntry& entry : entries) {
    if (entry.key == "model" && inputs.model.empty()) inputs.model = entry.value;
    if (entry.key == "data" && inputs.data.empty()) inputs.data = comma_separated(entry.value);
  }
  std::erase_if(entries, is_capture_input);
  flags.job.options = options_over<CaptureOptions>(run, entries, resolve_options<CaptureOptions>);
  if (inputs.model.empty())
    fail_input("no model: give the folder or GGUF file of a published one, or RUN (see 'headscope capture --help')");
}

void print_text(const CaptureOutcome& outcome) {
  if (outcome.already_complete) {
    fmt::print("{} is complete; nothing is left to do\n", visible(outcome.out));
    return;
  }
  const CaptureSummary& summary = outcome.summary;
  fmt::print("{}: queries and keys {} RoPE: {} vectors of {} files, from {} of {} texts in {} ({} tokens/s)\n",
             visible(summary.title), summary.rope, with_separators(summary.rows), with_separators(summary.files),
             tokens_text(summary.tokens), with_separators(summary.texts), format_duration(summary.seconds),
             with_separators(static_cast<std::int64_t>(summary.tokens_per_second)));
  fmt::print("captured: {}\nanalyse it: {} plasticity {}\n", visible(outcome.out), called_as(),
             shell_word(outcome.out.string()));
}

}  // namespace

void add_resumed_inputs(const ordered_json& config, CaptureInputs& inputs) {
  if (inputs.model.empty()) inputs.model = text_at(config, "model");
  if (inputs.data.empty()) inputs.data = config.value("data", std::vector<std::string>());
}

bool is_capture_input(const ConfigEntry& entry) {
  return entry.key == "model" || entry.key == "title" || entry.key == "data" || entry.key.starts_with("data.");
}

void add_capture_flags(CLI::App& command, std::vector<std::string>& texts, std::vector<ConfigEntry>& entries) {
  const char* group = "Capture";
  command.add_option("--data", texts, "Text of a model that is captured first: .txt, .jsonl, .parquet, folders of it")
      ->type_name("FILE")
      ->group(group);
  for (const auto& [flag, key, type, help] :
       {std::array{"--sampler", "sampler", "NAME", "Positions that are kept: log, uniform or all [log]"},
        std::array{"--bucket-size", "bucket_size", "N", "Positions of a bucket; of log, of the first [128]"},
        std::array{"--base-rate", "base_rate", "N", "Rows kept of a bucket and text, on average [1]"},
        std::array{"--max-length", "max_length", "N", "Tokens of a text [4096]"},
        std::array{"--max-documents", "max_documents", "N", "Texts to read [all]"},
        std::array{"--dtype", "dtype", "NAME", "What the model computes in: float32 or bfloat16 [float32]"},
        std::array{"--device", "device", "NAME", "auto, cpu or cuda (cuda:1: the second GPU) [auto]"},
        std::array{"--tokenizer", "tokenizer", "PATH", "Of the text [the model's own]"},
        std::array{"--text-column", "text_column", "NAME", "Field or column that holds the text [text]"}}) {
    add_key_flag(command, entries, flag, key, type, help);
    command.get_option(flag)->group(group);
  }
  command
      .add_flag_callback(
          "--pre-rope",
          [&entries] {
            entries.push_back({"pre_rope", "true", "--pre-rope"});
          },
          "Capture before RoPE [after]")
      ->group(group);
}

void add_capture(CLI::App& app, CommonFlags& common, Command& chosen) {
  auto flags = std::make_shared<CaptureFlags>();
  auto* command = app.add_subcommand("capture", "Save queries and keys of a model's heads, as plasticity reads them");
  CaptureInputs& inputs = flags->job.inputs;
  command
      ->add_option("model", inputs.model,
                   "The folder or GGUF file of a published model, RUN/checkpoints/step-N, or RUN for the newest")
      ->type_name("MODEL");
  command
      ->add_option("--data", inputs.data,
                   "Text: .txt, .jsonl (also packed: .gz, .zst), .parquet, or folders of it [what RUN held out]")
      ->type_name("FILE");
  command
      ->add_option("--config", flags->config, "YAML configuration, such as config.yaml of a capture; flags override it")
      ->type_name("FILE");
  add_out_flags(*command, flags->job.folder);
  add_option_flags(*command, CaptureOptions{}, flags->entries);
  add_common_flags(*command, common);
  when_chosen(*command, chosen, [flags, &common] {
    Console console(common.console);
    resolve(*flags);
    choose_out(flags->job.folder, common, "capture-" + folder_name(flags->job.inputs.model));
    check_out(flags->job.folder, capture_command, RunWrites::as_it_goes);
    const CaptureOutcome outcome = torch_half().capture(flags->job, console);
    if (common.json) {
      ordered_json object = {{"out", outcome.out.string()}, {"already_complete", outcome.already_complete}};
      object.update(to_json(outcome.summary));
      fmt::print("{}", json_text(object));
    } else if (!common.console.quiet) {
      print_text(outcome);
    }
    return 0;
  });
}

}  // namespace headscope
