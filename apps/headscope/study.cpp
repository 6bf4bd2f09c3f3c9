#include "core/lists.h"
#include "dry_run.h"
#include "study/own_conditions.h"
#include "study/study_power.h"
#include "study/study_text.h"
#include "torch_half.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

// Flags of both kinds of study, the one that trains and the one that analyses.
struct StudyFlags {
  std::vector<std::filesystem::path> analyze;
  std::filesystem::path config;
  std::vector<ConfigEntry> entries;  // flags, in the order in which they were given
  std::optional<double> tau;
  std::string theme = "light";
  RunFolderOptions folder;
  bool dry_run = false, power = false, controls = false, no_report = false;
};

ordered_json json_of(const AnalyzeOutcome& outcome) {
  ordered_json object = {
      {"out", outcome.out.string()}, {"verdict", verdict_json(outcome.result)}, {"tokens", outcome.result.tokens}};
  for (std::size_t i = 0; i < outcome.result.val_loss.size(); ++i)  // NaN becomes null
    object["val_loss"][key_of(outcome.result.verdict.conditions[i].condition.tag)] = outcome.result.val_loss[i].mean;
  object["seconds"] = outcome.seconds;
  return object;
}

void print_verdict(const AnalyzeOutcome& outcome) {
  fmt::print("{}\nfigures (1_loss.png, 2_key_pr_causal.png, ...) and combined.json: {}\n", verdict_text(outcome.result),
             visible(outcome.out));
}

// Whether there are flags of training.
bool trains(const StudyFlags& flags) {
  return !flags.entries.empty() || !flags.config.empty() || flags.dry_run || flags.controls;
}

// Without results: what to expect of deviations that one may have.
int power_only(const StudyFlags& flags, const CommonFlags& common) {
  if (trains(flags) || !flags.folder.out.empty())
    fail_input("--power trains nothing; it goes with --tau, --json and --analyze alone");
  const double tau = flags.tau.value_or(default_tau);
  check_tau(tau);
  fmt::print("{}", common.json ? json_text({{"tau", tau}, {"power", power_table(tau)}}) : power_table_text(tau));
  return 0;
}

int analyze_only(const StudyFlags& flags, const CommonFlags& common) {
  Console console(common.console);
  if (trains(flags)) fail_input("--analyze takes existing results; flags of training do not go with it");
  AnalyzeJob job{flags.analyze, flags.tau.value_or(default_tau), flags.folder, flags.theme};
  choose_out(job.folder, common, "study-" + folder_name(flags.analyze.front()));
  const bool no_report = flags.no_report || stays_as_it_is(job.folder);
  const AnalyzeOutcome outcome = run_analysis(job);
  for (const std::string& warning : outcome.result.warnings) console.warn(warning);
  if (common.json) {
    ordered_json object = json_of(outcome);
    if (flags.power) object["power"] = power_of(outcome.result.verdict);
    fmt::print("{}", json_text(object));
  } else if (!common.console.quiet) {
    print_verdict(outcome);
    if (flags.power) fmt::print("\n{}", power_text(outcome.result.verdict));
  }
  finish_with_report(outcome.out, no_report, common);
  return 0;
}

// A run that analyses is gone on with: what it read, and its tau.
void add_resumed_analysis(StudyFlags& flags) {
  const auto manifest = manifest_to_resume(flags.folder, study_command, RunWrites::as_it_goes);
  if (!manifest || !manifest->at("config").contains("analyze") || !flags.analyze.empty()) return;
  const ordered_json& config = manifest->at("config");
  for (const std::string& folder : comma_separated(text_at(config, "analyze"))) flags.analyze.emplace_back(folder);
  if (!flags.tau) flags.tau = config.value("tau", default_tau);
}

StudyOptions options_of(const StudyFlags& flags) {
  std::vector<ConfigEntry> entries = with_own_conditions(all_entries(flags.config, flags.entries));
  if (flags.controls) entries = with_controls(std::move(entries));
  if (flags.tau) entries.push_back({"study.tau", fmt::format("{}", *flags.tau), "--tau"});
  for (const ConfigEntry& entry : entries)
    if (varies_between_conditions(entry.key))
      fail_input("{}: {} is what the conditions of a study differ in; choose among them with --conditions", entry.where,
                 entry.key);
  StudyOptions options = setup_over<StudyOptions>(flags.folder, study_command, entries);
  validate(options);
  return options;
}

void print_study(const StudyOutcome& outcome) {
  print_verdict(outcome);
  if (outcome.unigram_entropy)
    fmt::print("{}\n", losses_text(outcome.result.val_loss, *outcome.unigram_entropy, outcome.true_entropy));
}

int train_and_conclude(const StudyFlags& flags, const CommonFlags& common) {
  const StudyOptions options = options_of(flags);
  StudyJob job{options, flags.folder, flags.theme};
  choose_out(job.folder, common, "study-" + options.preset);
  check_out(job.folder, study_command, RunWrites::as_it_goes);
  if (flags.dry_run)
    return dry_run(options, flags.theme, count_trainings(options),
                   fmt::format("{} of seeds {}", options.conditions, options.seeds), common);
  Console console(common.console);
  const bool no_report = flags.no_report || stays_as_it_is(job.folder);
  const StudyOutcome outcome = torch_half().study(job, console);
  if (common.json) {
    ordered_json object = json_of(outcome);
    object["entropy"] = entropy_json(outcome.unigram_entropy, outcome.true_entropy);
    object["device"] = outcome.device;
    object["tokens_per_s"] = outcome.tokens_per_s;
    fmt::print("{}", json_text(object));
  } else if (!common.console.quiet) {
    print_study(outcome);
  }
  finish_with_report(outcome.out, no_report, common);
  return 0;
}

}  // namespace

void add_study(CLI::App& app, CommonFlags& common, Command& chosen) {
  auto flags = std::make_shared<StudyFlags>();
  auto* command = app.add_subcommand(
      "study",
      "The causal QK-Norm study: trains with a learned gain, a frozen gain and without QK-Norm; says what changed "
      "the rank of the keys");
  add_key_flag(*command, flags->entries, "--preset", "preset", "NAME", "Model and training: tiny, 88m or 1.5b [tiny]");
  command->add_option("--config", flags->config, "Configuration file (YAML), over the preset")->type_name("FILE");
  add_set_flag(*command, flags->entries, "Any key of the configuration; 'headscope config' lists them");
  add_key_flag(*command, flags->entries, "--data", "data.path", "PATH",
               "Text or token file, or a folder [the embedded language]");
  add_key_flag(*command, flags->entries, "--tokenizer", "data.tokenizer", "PATH",
               "Of text: bytes, a tokenizer.json, the folder of a model that holds one, or a GGUF file [bytes]");
  add_key_flag(*command, flags->entries, "--seeds", "study.seeds", "N,N",
               "Seeds; several give intervals and tests [42]");
  add_key_flag(
      *command, flags->entries, "--conditions", "study.conditions", "TAG,TAG",
      fmt::format("Which to train; a file (.yaml) stands for your own in it [{}]", StudyOptions().conditions).c_str());
  command->add_flag("--controls", flags->controls,
                    "Train the controls, too, which tell learning, decay and temperature apart");
  add_key_flag(*command, flags->entries, "--device", "device", "NAME",
               "auto, cpu or cuda (cuda:1: the second GPU) [auto]");
  add_key_flag(*command, flags->entries, "--threads", "threads", "N",
               "Threads on the CPU [OMP_NUM_THREADS, or all cores]");
  command->add_flag("--dry-run", flags->dry_run, "Say what it takes: parameters, tokens, memory, time; train nothing");
  command
      ->add_option("--analyze", flags->analyze,
                   fmt::format("No training: folder with {}/, {}/ and {}/results.json, or with such folders seed_N; "
                               "several: one per seed",
                               condition_tags[0], condition_tags[1], condition_tags[2]))
      ->type_name("DIR");
  command->add_flag("--power", flags->power,
                    "How many seeds decide: with --analyze for the deviation that is observed, otherwise a table");
  add_number_flag(*command, "--tau", flags->tau, "N", "Smaller differences of the mean key PR count as none [1]");
  command->add_option("--theme", flags->theme, "Figures: light or dark [light]")->type_name("NAME");
  add_report_flag(*command, flags->no_report);
  add_out_flags(*command, flags->folder);
  add_common_flags(*command, common);
  when_chosen(*command, chosen, [flags, &common] {
    add_resumed_analysis(*flags);
    if (!flags->analyze.empty()) return analyze_only(*flags, common);
    return flags->power ? power_only(*flags, common) : train_and_conclude(*flags, common);
  });
}

}  // namespace headscope
