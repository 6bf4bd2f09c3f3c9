#include "core/lists.h"
#include "dry_run.h"
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
  bool dry_run = false;
};

ordered_json json_of(const TrainRunOutcome& outcome) {
  ordered_json object = {{"out", outcome.out.string()}, {"val_loss", outcome.val_loss}};
  object["entropy"] = entropy_json(outcome.unigram_entropy, outcome.true_entropy);
  object["findings"] = outcome.summary.findings ? to_json(*outcome.summary.findings) : ordered_json();
  object["roles"] = outcome.summary.roles ? to_json(*outcome.summary.roles) : ordered_json();
  object["device"] = outcome.device;
  object["tokens_per_s"] = outcome.tokens_per_s;
  object["seconds"] = outcome.seconds;
  return object;
}

void print(const TrainRunOutcome& outcome) {
  fmt::print("validation loss {:.3f} nats", outcome.val_loss);
  if (outcome.true_entropy)
    fmt::print(" (the language's unigram entropy is {:.3f}, its true entropy {:.3f})", *outcome.unigram_entropy,
               *outcome.true_entropy);
  else if (outcome.unigram_entropy)
    fmt::print(" (a model that knows only how frequent each token is has {:.3f})", *outcome.unigram_entropy);
  fmt::print("\n\n");
  if (outcome.summary.findings) fmt::print("{}\n", to_terminal(*outcome.summary.findings));
  if (outcome.summary.roles) fmt::print("{}\n", to_terminal(*outcome.summary.roles));
  fmt::print("summary.md, tables and plots/: {}\n", visible(outcome.out));
}

TrainRunJob job_of(const TrainFlags& flags, const RunFolderOptions& folder, const std::vector<ConfigEntry>& entries) {
  return {setup_over<TrainRunOptions>(folder, train_command, entries), folder, flags.theme};
}

// One run after another, each in a folder of its own: OUT/seed_42.
int train_seeds(const TrainFlags& flags, const CommonFlags& common) {
  Console console(common.console);
  std::vector<TrainRunJob> jobs;
  RunFolderOptions folder = flags.folder;
  const std::vector<ConfigEntry> given = all_entries(flags.config, flags.entries);
  choose_out(folder, common, "train-" + resolve_setup<TrainRunOptions>(given).preset);
  if (is_run(folder.out))
    fail_input("--out {}: is a run itself; seeds go into folders of their own", folder.out.string());
  for (const std::string& seed : comma_separated(flags.seeds)) {
    std::vector<ConfigEntry> entries = given;
    entries.push_back({"train.seed", seed, "--seeds"});
    RunFolderOptions of_seed = folder;
    of_seed.out = folder.out / ("seed_" + seed);
    of_seed.resume = folder.resume && std::filesystem::exists(of_seed.out);  // those that had not begun begin
    jobs.push_back(job_of(flags, of_seed, entries));
    if (std::ranges::count(jobs, jobs.back().options.seed, [](const TrainRunJob& job) { return job.options.seed; }) > 1)
      fail_input("--seeds {}: {} is there twice", flags.seeds, seed);
    validate(jobs.back().options);
    check_out(jobs.back().folder, train_command, RunWrites::as_it_goes);
  }
  if (flags.dry_run)
    return dry_run(jobs.front().options, flags.theme, static_cast<std::int64_t>(jobs.size()), "seeds " + flags.seeds,
                   common);
  ordered_json runs = ordered_json::array();
  for (const TrainRunJob& job : jobs) {
    console.info(fmt::format("seed {}", job.options.seed));
    const TrainRunOutcome outcome = torch_half().train(job, console);
    runs.push_back(json_of(outcome));
    if (!common.json && !common.console.quiet)
      fmt::print("seed {}: validation loss {:.3f} nats; summary.md, tables and plots/: {}\n", job.options.seed,
                 outcome.val_loss, visible(outcome.out));
  }
  if (common.json) fmt::print("{}", json_text({{"runs", std::move(runs)}}));
  return 0;
}

int train_command_line(const TrainFlags& flags, const CommonFlags& common) {
  if (!flags.seeds.empty()) return train_seeds(flags, common);
  Console console(common.console);
  TrainRunJob job = job_of(flags, flags.folder, all_entries(flags.config, flags.entries));
  choose_out(job.folder, common, "train-" + job.options.preset);
  validate(job.options);  // this and the folder before torch is loaded
  check_out(job.folder, train_command, RunWrites::as_it_goes);
  if (flags.dry_run) return dry_run(job.options, flags.theme, /*runs=*/1, /*of=*/"", common);
  const TrainRunOutcome outcome = torch_half().train(job, console);
  if (common.json)
    fmt::print("{}", json_text(json_of(outcome)));
  else if (!common.console.quiet)
    print(outcome);
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
  add_key_flag(*command, entries, "--track-every", "track.every", "N",
               "Updates between measurements on the training batch; 1: every step, 0: none [10]");
  add_key_flag(*command, entries, "--probe-every", "train.probe_every", "N",
               "Forward steps between measurements on the fixed held-out batch [tiny: 10, others: 120]");
  add_key_flag(
      *command, entries, "--track", "track.metrics", "NAME,NAME",
      "What is measured: groups (norm, outlier, rank, redundancy, attention, pattern, induction, gain) or single "
      "metrics [all]");
  add_key_flag(*command, entries, "--seed", "train.seed", "N", "Seed of the weights and of the order of the data [42]");
  command->add_option("--seeds", flags->seeds, "Several seeds, one run after another: OUT/seed_42, OUT/seed_43")
      ->type_name("N,N");
  add_key_flag(*command, entries, "--device", "device", "NAME", "auto, cpu or cuda [auto]");
  add_key_flag(*command, entries, "--threads", "threads", "N", "Threads on the CPU [OMP_NUM_THREADS, or all cores]");
  command->add_flag("--dry-run", flags->dry_run, "Say what it takes: parameters, tokens, memory, time; train nothing");
  command->add_option("--theme", flags->theme, "Figures: light or dark [light]")->type_name("NAME");
  add_out_flags(*command, flags->folder);
  add_common_flags(*command, common);
  when_chosen(*command, chosen, [flags, &common] { return train_command_line(*flags, common); });
}

}  // namespace headscope
