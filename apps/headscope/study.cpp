#include "core/bounds.h"
#include "core/interrupt.h"
#include "core/lists.h"
#include "core/parallel.h"
#include "core/plain_error.h"
#include "dry_run.h"
#include "scale_plan.h"
#include "study/own_conditions.h"
#include "study/study_power.h"
#include "study/study_text.h"
#include "study/workers.h"
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
  std::optional<std::int64_t> jobs;
  std::optional<std::string> devices;
  PlanFlags plan;
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
  return !flags.entries.empty() || !flags.config.empty() || flags.dry_run || flags.controls || flags.jobs ||
         flags.devices || flags.plan.any();
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

// Throws where the flags of a plan stand beside what does not plan.
void check_plan_flags(const StudyFlags& flags) {
  if (!flags.plan.any()) return;
  if (!flags.dry_run && flags.plan.ranks)
    fail_input(
        "--ranks: a run of a study is one process, and its runs are trained side by side; leave --ranks out and say "
        "--devices all (GPUs) or --jobs (CPU), or plan with --dry-run");
  if (!flags.dry_run) fail_input("--cluster is for --dry-run, which plans for it; leave it out to train");
  if (flags.jobs || flags.devices)
    fail_input("--{}: a plan for a cluster is of --ranks GPUs; leave it out", flags.jobs ? "jobs" : "devices");
}

// The devices of the workers, one each; none where this process trains by itself.
std::vector<std::string> devices_of(const StudyFlags& flags, StudyOptions& options) {
  if (flags.jobs && flags.devices) fail_input("--jobs is for the CPU, --devices for GPUs; give one of them");
  const bool is_cpu = options.device == "cpu", may_be_either = options.device == "auto";
  if (flags.jobs) {
    check_size("--jobs", *flags.jobs, 1, most_threads);
    if (!is_cpu && !may_be_either)
      fail_input("--jobs is for the CPU, and the device is {}; use several GPUs with --devices", options.device);
    options.device = "cpu";
    const std::int64_t jobs = std::min(*flags.jobs, count_trainings(options));
    return std::vector<std::string>(jobs == 1 ? 0 : static_cast<std::size_t>(jobs), options.device);
  }
  if (!flags.devices) return {};
  const std::vector<int> wanted = parse_devices(*flags.devices);
  if (!may_be_either && options.device != "cuda")
    fail_input("--devices is for GPUs, and the device is {}; leave one of them out", options.device);
  options.device = "cuda";
  std::vector<std::string> devices;
  for (const int gpu : torch_half().gpus(wanted)) devices.push_back(fmt::format("cuda:{}", gpu));
  return devices;
}

// ": the bytes of a serial study with --threads 2", where all of the study is trained with so many.
std::string bytes_text(const ordered_json& before, std::int64_t threads) {
  if (threads_in(before).value_or(threads) != threads) return "";
  return fmt::format(": the bytes of a serial study with --threads {}", threads);
}

// Threads of the CPU, unless the user says how many a worker has.
void divide_threads(StudyOptions& options, const RunFolderOptions& folder, std::size_t workers, Console& console) {
  if (options.threads > 0 || environment_names_threads()) return;
  options.threads = static_cast<std::int64_t>(std::max<std::size_t>(1, available_cores() / workers));
  RunFolderOptions going_on = folder;
  going_on.resume = folder.resume || folder.join;
  const ordered_json before =
      manifest_to_resume(going_on, study_command, RunWrites::as_it_goes).value_or(ordered_json());
  if (options.device != "cpu" || text_at(before, "status") == status_name(RunStatus::complete)) return;
  console.info(fmt::format("{} at once, with {} thread{} each{}", workers, options.threads,
                           options.threads == 1 ? "" : "s", bytes_text(before, options.threads)));
}

StudyOutcome train_study(const StudyJob& job, std::vector<std::string> devices, const CommonFlags& common) {
  Console console(common.console);
  if (devices.empty()) {
    ConsoleBoard board(console);
    return torch_half().study(job, console, board);
  }
  WorkerJob of_a_worker{job.options, job.folder, job.theme, {}, common.console};
  const ordered_json sent = to_json(of_a_worker).flatten();  // to the workers
  for (const auto& [key, value] : sent.items())
    if (!is_utf8(value))
      fail_input("{}: is no UTF-8, which --jobs and --devices need; give it another name", json_line(value));
  devices.resize(std::min(devices.size(), static_cast<std::size_t>(count_trainings(job.options))));
  divide_threads(of_a_worker.options, job.folder, devices.size(), console);
  const auto start = Clock::now();
  const bool concluded = train_side_by_side(of_a_worker, devices, console);
  StudyOutcome outcome = read_outcome(job.folder.out, job.options.tau);
  outcome.concluded = concluded;
  if (concluded) outcome.seconds = seconds_since(start);
  return outcome;
}

// Processes of a launcher run the same command line: the first begins the study, the others join it.
void join_other_tasks(RunFolderOptions& folder) {
  if (!is_one_of_several_tasks()) return;
  if (folder.out.empty()) fail_input("several processes of a launcher train one study: name its folder with --out");
  if (folder.overwrite)
    fail_input("--overwrite: several processes of a launcher train one study; remove {} first", folder.out.string());
  folder.join = true;
}

int train_and_conclude(const StudyFlags& flags, const CommonFlags& common) {
  StudyOptions options = options_of(flags);
  RunFolderOptions folder = flags.folder;
  check_plan_flags(flags);
  if (!flags.dry_run) join_other_tasks(folder);
  choose_out(folder, common, "study-" + options.preset);
  check_out(folder, study_command, RunWrites::as_it_goes);
  const std::string of = fmt::format("{} of seeds {}", options.conditions, options.seeds);
  if (flags.plan.any())
    return plan_ranks(options, RanksReduce::by_backend, flags.plan, flags.theme, {count_trainings(options), of},
                      common);
  const std::vector<std::string> devices = devices_of(flags, options);
  if (flags.dry_run)
    return dry_run(options, flags.theme, count_trainings(options), of,
                   std::max<std::int64_t>(1, static_cast<std::int64_t>(devices.size())), common);
  const bool was_complete = is_complete_already(folder), no_report = flags.no_report || stays_as_it_is(folder);
  const StudyOutcome outcome = train_study({options, folder, flags.theme}, devices, common);
  if (common.json) {
    ordered_json object = json_of(outcome);
    object["entropy"] = entropy_json(outcome.unigram_entropy, outcome.true_entropy);
    object["device"] = outcome.device;
    object["tokens_per_s"] = outcome.tokens_per_s;
    fmt::print("{}", json_text(object));
  } else if (!common.console.quiet) {
    print_study(outcome);
  }
  finish_with_report(outcome.out, no_report || (!outcome.concluded && !was_complete), common);
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
               "Threads on the CPU; with --jobs of each run [OMP_NUM_THREADS, or all cores]");
  add_number_flag(*command, "--jobs", flags->jobs, "N",
                  "Train so many runs at once on the CPU; without --threads or OMP_NUM_THREADS its cores are divided "
                  "among them; with --resume --out it joins a study that is at work [1]");
  add_number_flag(*command, "--devices", flags->devices, "N,N",
                  "Train on several GPUs at once, a run on each: all, or numbers such as 0,1,3");
  command->add_flag("--dry-run", flags->dry_run, "Say what it takes: parameters, tokens, memory, time; train nothing");
  add_number_flag(*command, "--ranks", flags->plan.ranks, "N",
                  "With --dry-run: GPUs of a cluster that the study is planned for; none is needed here");
  add_cluster_flag(*command, flags->plan);
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
  command->get_option("--resume")
      ->description("Go on with the study that is in --out; where other processes train it now, train beside them");
  add_common_flags(*command, common);
  when_chosen(*command, chosen, [flags, &common] {
    add_resumed_analysis(*flags);
    if (!flags->analyze.empty()) return analyze_only(*flags, common);
    return flags->power ? power_only(*flags, common) : train_and_conclude(*flags, common);
  });
}

int study_worker() {
  const InterruptGuard guard;  // also while torch is loaded
  take_repeated_signals_as_one();
  WorkerBoard board;
  try {
    const WorkerJob job = board.job();
    Console console(job.console);
    if (job.goes_on && !is_run(job.folder.out)) fail_moved_away(job.folder.out);
    torch_half().study({job.options, job.folder, job.theme, {}, job.device}, console, board);
    return 0;
  } catch (const Error& error) {
    board.stopped(error);
    return error.exit_code();
  } catch (const std::exception& error) {
    const Error plain = plain_error(error);
    board.stopped(plain);
    return plain.exit_code();
  }
}

}  // namespace headscope
