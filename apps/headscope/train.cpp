#include <optional>

#include "core/lists.h"
#include "core/text.h"
#include "dry_run.h"
#include "figures/theme.h"
#include "launch/launch.h"
#include "scale_plan.h"
#include "torch_half.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

struct TrainFlags {
  std::filesystem::path config;
  std::vector<ConfigEntry> entries;
  std::string theme = "light";
  std::string seeds;  // comma-separated; empty: train.seed
  RunFolderOptions folder;
  bool dry_run = false, no_report = false;
  PlanFlags plan;  // its ranks are those of a run, too
};

// Throws where --ranks and the launcher's variables disagree.
void check_place(const RankPlace& place, const std::optional<std::int64_t>& ranks) {
  if (ranks) check_size("--ranks", *ranks, 1, place.several() ? most_ranks : most_threads);  // here they are processes
  if (ranks && place.several() && place.size != *ranks)
    fail_input("--ranks is {}, and {} is {}; leave --ranks out where a launcher starts the processes", *ranks,
               place.said_by, place.size);
}

// Every rank meets what is wrong with the command line; the first one says it. The first of every other machine does,
// too: a file may be missing there alone. So does each rank where nothing says which are on one machine: somebody
// started them by hand, and may have typed one wrong.
template <class Function>
auto said_by_first(const RankPlace& place, Function function) {
  try {
    return function();
  } catch (const Error& error) {
    if (place.first()) throw;
    throw Error(error.fault(), place.speaks_for_machine() ? fmt::format("{}: {}", place.name(), error.what()) : "");
  }
}

ordered_json json_of(const TrainRunOutcome& outcome) {
  ordered_json object = {{"out", outcome.out.string()}, {"val_loss", outcome.val_loss}};
  object["entropy"] = entropy_json(outcome.unigram_entropy, outcome.true_entropy);
  object["findings"] = outcome.summary.findings ? to_json(*outcome.summary.findings) : ordered_json();
  object["roles"] = outcome.summary.roles ? to_json(*outcome.summary.roles) : ordered_json();
  object["device"] = outcome.device;
  object["tokens_per_s"] = outcome.tokens_per_s;
  object["ranks"] = outcome.ranks;
  object["exchange_share"] = json_value(outcome.exchange_share);
  object["seconds"] = outcome.seconds;
  return object;
}

void print(const TrainRunOutcome& outcome) {
  fmt::print("validation loss {:.3f} nats", outcome.val_loss);
  if (outcome.true_entropy)
    fmt::print(" (the language's unigram entropy is {:.3f}, its true entropy {:.3f})", *outcome.unigram_entropy,
               *outcome.true_entropy);
  else if (outcome.unigram_entropy)
    fmt::print(" (unigram entropy of the training text: {:.3f})", *outcome.unigram_entropy);
  fmt::print("\n\n");
  if (outcome.summary.findings) fmt::print("{}\n", to_terminal(*outcome.summary.findings));
  if (outcome.summary.roles) fmt::print("{}\n", to_terminal(*outcome.summary.roles));
  if (outcome.ranks > 1 && !std::isnan(outcome.exchange_share))
    fmt::print("{} ranks: {} tokens/s in updates, {:.0f} % of that time exchanging and waiting for others\n\n",
               outcome.ranks, with_separators(std::llround(outcome.tokens_per_s)), 100 * outcome.exchange_share);
  fmt::print("summary.md, tables and plots/: {}\n", visible(outcome.out));
}

// The runs of several seeds: OUT/seed_42, OUT/seed_43.
struct SeedRuns {
  std::filesystem::path out;
  std::string seeds;  // as given
  std::vector<TrainRunJob> jobs;
};

// Of a seed that --resume goes on with, or that begins: then with the configuration of those that have begun.
TrainRunOptions options_of_seed(const RunFolderOptions& of_seed, const std::optional<RunFolderOptions>& begun,
                                const std::vector<ConfigEntry>& entries) {
  if (of_seed.resume || !begun) return setup_over<TrainRunOptions>(of_seed, train_command, entries);
  return setup_over<TrainRunOptions>(*begun, train_command, entries, {"train.seed"});
}

// Seeds that have begun were begun together: --overwrite that was stopped leaves seeds of another configuration.
void refuse_other_setups(const std::vector<TrainRunJob>& jobs) {
  const TrainRunJob* first = nullptr;
  for (const TrainRunJob& job : jobs) {
    if (!job.folder.resume) continue;
    if (first == nullptr) first = &job;
    for (const ConfigKey& key : config_keys(job.options)) {
      const auto here = value_at(job.options, key.key), there = value_at(first->options, key.key);
      if (here != there && key.key != "train.seed" && key.key != "threads" && key.key != "device")
        fail_input("{}: {} is {}, and {} in {}; remove the one that is not meant, then go on", job.folder.out.string(),
                   key.key, here.dump(), there.dump(), first->folder.out.string());
    }
  }
}

// Those that a folder holds: "42,43".
std::string seeds_in(const std::filesystem::path& out) {
  std::vector<std::uint64_t> seeds;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(out, error)) {
    const std::string name = entry.path().filename().string();
    std::uint64_t seed = 0;
    if (name.starts_with("seed_") && parse_value(name.substr(5), seed) && is_run(entry.path())) seeds.push_back(seed);
  }
  std::ranges::sort(seeds);
  return fmt::format("{}", fmt::join(seeds, ","));
}

SeedRuns seed_runs(const TrainFlags& flags, const CommonFlags& common) {
  if (std::ranges::find(flags.entries, "train.seed", &ConfigEntry::key) != flags.entries.end())
    fail_input("--seed and --seeds: give one of them");
  RunFolderOptions folder = flags.folder;
  const std::vector<ConfigEntry> given = all_entries(flags.config, flags.entries);
  choose_out(folder, common, "train-" + resolve_setup<TrainRunOptions>(given).preset);
  if (is_run(folder.out))
    fail_input("--out {}: is a run itself; seeds go into folders of their own", folder.out.string());
  SeedRuns runs{folder.out, flags.seeds, {}};
  std::vector<RunFolderOptions> folders;
  std::optional<RunFolderOptions> begun;
  std::vector<std::uint64_t> seeds;
  for (const std::string& text : comma_separated(flags.seeds)) {
    std::uint64_t seed = 0;
    if (!parse_value(text, seed)) fail_input("--seeds {}: '{}' is no whole number", flags.seeds, text);
    if (std::ranges::find(seeds, seed) != seeds.end()) fail_input("--seeds {}: {} is there twice", flags.seeds, seed);
    seeds.push_back(seed);
    RunFolderOptions& of_seed = folders.emplace_back(folder);
    of_seed.out = folder.out / fmt::format("seed_{}", seed);
    of_seed.resume = folder.resume && is_run(of_seed.out);  // those that had not begun begin
    if (of_seed.resume && !begun) begun = of_seed;
  }
  if (folder.resume && !begun && given.empty())
    fail_input("--resume {}: none of the seeds has begun; leave --resume out to start them", folder.out.string());
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    std::vector<ConfigEntry> entries = given;
    entries.push_back({"train.seed", std::to_string(seeds[i]), "--seeds"});
    runs.jobs.push_back({options_of_seed(folders[i], begun, entries), folders[i], flags.theme});
    validate(runs.jobs.back().options);
    check_out(folders[i], train_command, RunWrites::as_it_goes);
  }
  refuse_other_setups(runs.jobs);
  return runs;
}

// One run after another.
int train_seeds(const TrainFlags& flags, const CommonFlags& common) {
  Console console(common.console);
  const SeedRuns runs = seed_runs(flags, common);
  if (flags.dry_run)
    return dry_run(runs.jobs.front().options, flags.theme, static_cast<std::int64_t>(runs.jobs.size()),
                   "seeds " + runs.seeds, /*at_once=*/1, common);
  ordered_json printed = ordered_json::array();
  for (const TrainRunJob& job : runs.jobs) {
    console.info(fmt::format("seed {}", job.options.seed));
    const bool no_report = flags.no_report || stays_as_it_is(job.folder);
    try {
      const TrainRunOutcome outcome = torch_half().train(job, console);
      printed.push_back(json_of(outcome));
      if (!common.json && !common.console.quiet)
        fmt::print("seed {}: validation loss {:.3f} nats; summary.md, tables and plots/: {}\n", job.options.seed,
                   outcome.val_loss, visible(outcome.out));
      finish_with_report(outcome.out, no_report, common);
    } catch (const Error& error) {
      if (error.fault() != Fault::interrupted) throw;
      const std::string message = error.what(), hint = resume_hint(train_command, job.folder.out);
      throw Error(Fault::interrupted,
                  fmt::format("seed {}: {}{}", job.options.seed, message.substr(0, message.find(hint)),
                              resume_hint(fmt::format("{} --seeds {}", train_command, runs.seeds), runs.out)));
    }
  }
  if (common.json) fmt::print("{}", json_text({{"runs", std::move(printed)}}));
  return 0;
}

// A rank that is not the first: what it would say, the first one says.
int train_silently(const TrainRunJob& job) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nothing(std::fopen("/dev/null", "w"), std::fclose);
  Console console({.quiet = true}, nothing.get());
  said_by_first(job.place, [] { return &torch_half(); })->train(job, console);
  return 0;
}

// The plan of one run.
int plan_of(const TrainFlags& flags, const CommonFlags& common) {
  if (!flags.dry_run) fail_input("--cluster is for --dry-run, which plans for it; leave it out to train");
  if (!flags.seeds.empty()) fail_input("--seeds: a plan for ranks is of one run; leave --seeds out");
  RunFolderOptions folder = flags.folder;
  const auto options = setup_over<TrainRunOptions>(folder, train_command, all_entries(flags.config, flags.entries));
  validate(options);
  choose_out(folder, common, "train-" + options.preset);
  check_out(folder, train_command, RunWrites::as_it_goes);
  return plan_ranks(options, options.ranks.reduce, flags.plan, flags.theme, {}, common);
}

// Checked before torch is loaded.
TrainRunJob job_on(const RankPlace& place, std::int64_t ranks, const TrainFlags& flags) {
  if (!flags.seeds.empty() && ranks > 1)
    fail_input("--seeds on {} ranks: several ranks train one seed; start a run for each seed", ranks);
  TrainRunJob job{setup_over<TrainRunOptions>(flags.folder, train_command, all_entries(flags.config, flags.entries)),
                  flags.folder, flags.theme, place};
  validate(job.options);
  check_ranks(job.options.train, ranks, place.launched_here ? "" : place.said_by,
              flags.folder.resume && is_run(flags.folder.out));
  theme_named(job.theme);
  // Runs that meet at one port by mistake differ in it.
  job.place.run += "/" + (job.folder.out / "").lexically_normal().string();
  return job;
}

// --ranks. Ranks that miss one notice it by themselves.
int launch(const TrainRunJob& job, std::int64_t ranks) {
  constexpr double seconds_to_end = 30;
  const double timeout = job.options.ranks.timeout;
  return launch_ranks(ranks, {.first = timeout, .others = std::min(timeout, seconds_to_end)}, [&] {
    if (!is_run(job.folder.out)) return std::string("nothing was written; start it again");
    return fmt::format("{} --ranks {}", resume_hint(train_command, job.folder.out), ranks);
  });
}

int train_command_line(TrainFlags& flags, const CommonFlags& common) {
  if (flags.plan.cluster || (flags.dry_run && flags.plan.ranks)) return plan_of(flags, common);
  if (flags.seeds.empty() && flags.folder.resume && !is_run(flags.folder.out)) flags.seeds = seeds_in(flags.folder.out);
  const RankPlace place = flags.plan.ranks == 1 ? RankPlace() : rank_place();
  const std::int64_t ranks = flags.plan.ranks.value_or(place.size);
  if (!flags.seeds.empty() && ranks == 1 && !place.several()) return train_seeds(flags, common);
  TrainRunJob job = said_by_first(place, [&] {
    check_place(place, flags.plan.ranks);
    return job_on(place, ranks, flags);
  });
  if (!place.first()) return flags.dry_run ? 0 : train_silently(job);
  Console console(common.console);
  choose_out(job.folder, common, "train-" + job.options.preset);
  // Of several ranks when all have come, so that none waits for one that was refused.
  if (!place.several() || flags.dry_run) check_out(job.folder, train_command, RunWrites::as_it_goes);
  if (flags.dry_run) return dry_run(job.options, flags.theme, /*runs=*/1, /*of=*/"", /*at_once=*/1, common);
  if (ranks > place.size) return launch(job, ranks);
  const bool no_report = flags.no_report || stays_as_it_is(job.folder);
  const TrainRunOutcome outcome = torch_half().train(job, console);
  if (common.json)
    fmt::print("{}", json_text(json_of(outcome)));
  else if (!common.console.quiet)
    print(outcome);
  finish_with_report(outcome.out, no_report, common);
  return 0;
}

}  // namespace

void add_train(CLI::App& app, CommonFlags& common, Command& chosen) {
  auto flags = std::make_shared<TrainFlags>();
  auto* command = app.add_subcommand("train", "Train one model and measure every head on the way");
  auto& entries = flags->entries;
  add_key_flag(*command, entries, "--preset", "preset", "NAME", "Model and training: tiny, 88m or 1.5b [tiny]");
  command->add_option("--config", flags->config, "Configuration file (YAML), over the preset")->type_name("FILE");
  add_set_flag(*command, entries, "Any key of the configuration; 'headscope config' lists them");
  add_key_flag(*command, entries, "--data", "data.path", "PATH",
               "Text or token file, or a folder [the embedded language]");
  add_key_flag(*command, entries, "--tokenizer", "data.tokenizer", "PATH",
               "Of text: bytes, a tokenizer.json, the folder of a model that holds one, or a GGUF file [bytes]");
  add_key_flag(*command, entries, "--track-every", "track.every", "N",
               "Updates between measurements on the training batch; 1: every step, 0: none [10]");
  add_key_flag(*command, entries, "--probe-every", "train.probe_every", "N",
               "Forward steps between measurements on the fixed held-out batch [tiny: 10, others: 120]");
  add_key_flag(
      *command, entries, "--track", "track.metrics", "METRIC,METRIC",
      "What is measured: groups (norm, outlier, rank, redundancy, attention, pattern, induction, gain, other_rank, "
      "score) or single metrics; all has no other_rank and score [all]");
  add_key_flag(*command, entries, "--seed", "train.seed", "N", "Seed of the weights and of the order of the data [42]");
  command->add_option("--seeds", flags->seeds, "Several seeds, one run after another: OUT/seed_42, OUT/seed_43")
      ->type_name("N,N")
      ->check(not_empty);
  add_key_flag(*command, entries, "--device", "device", "NAME", "auto, cpu or cuda (cuda:1: the second GPU) [auto]");
  add_key_flag(*command, entries, "--threads", "threads", "N", "Threads on the CPU [OMP_NUM_THREADS, or all cores]");
  add_number_flag(*command, "--ranks", flags->plan.ranks, "N",
                  "Start so many processes of this machine, which share each update; they divide train.accumulation. "
                  "Under torchrun, srun or mpirun leave it out. With --dry-run: GPUs that a run is planned for");
  add_cluster_flag(*command, flags->plan);
  command->add_flag("--dry-run", flags->dry_run, "Say what it takes: parameters, tokens, memory, time; train nothing");
  command->add_option("--theme", flags->theme, "Figures: light or dark [light]")->type_name("NAME");
  add_report_flag(*command, flags->no_report);
  add_out_flags(*command, flags->folder);
  add_common_flags(*command, common);
  when_chosen(*command, chosen, [flags, &common] { return train_command_line(*flags, common); });
}

}  // namespace headscope
