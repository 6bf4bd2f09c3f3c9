#include "command.h"
#include "core/error.h"
#include "study/options.h"
#include "train/benchmark.h"

namespace headscope {
namespace {

struct BenchFlags {
  std::string preset = "tiny", device = "auto";
  std::optional<std::int64_t> batch, seq, accumulation;
  std::int64_t steps = 20, warmup = 3;
  int threads = 0;  // 0: all cores
  std::vector<std::string> assignments;
  std::int64_t rounds = 10;
  std::string metrics = "all";
};

StudyOptions options_of(const BenchFlags& flags) {
  std::vector<ConfigEntry> entries = {{"preset", flags.preset, "--preset"}};
  const auto add = [&](const char* key, const char* flag, const auto& value) {
    if (value) entries.push_back({key, std::to_string(*value), flag});
  };
  add("train.batch", "--batch", flags.batch);
  add("train.seq_len", "--seq", flags.seq);
  add("train.accumulation", "--accumulation", flags.accumulation);
  for (const std::string& assignment : flags.assignments) entries.push_back(parse_assignment(assignment));
  StudyOptions options = resolve_setup<StudyOptions>(entries);
  options.train.probe_every = options.train.accumulation;  // none is made
  options.train.validation_batches = 1;
  if (flags.steps < 1 || flags.warmup < 0)
    fail_input("--steps {} --warmup {}: expected at least one timed step", flags.steps, flags.warmup);
  options.train.tokens = options.train.tokens_per_step() * (flags.steps + flags.warmup);
  validate(options);
  return options;
}

int bench_train(const BenchFlags& flags, const CommonFlags& common) {
  const StudyOptions options = options_of(flags);
  const ComputeDevice device = choose_device(flags.device, flags.threads);
  const TrainBenchmark result = benchmark_training(options.model, options.train, flags.warmup, flags.steps, device);
  if (common.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"tokens_per_s", result.tokens_per_s},
                                              {"peak_memory_mb", result.peak_memory_mb},
                                              {"loss_first", result.loss_first},
                                              {"loss_last", result.loss_last},
                                              {"device", device.description}}
                           .dump(2));
  else
    fmt::print("{} on {}: {:.0f} tokens/s (median of {} steps), peak memory {:.0f} MB\n", flags.preset,
               device.description, result.tokens_per_s, flags.steps, result.peak_memory_mb);
  return 0;
}

int bench_track(const BenchFlags& flags, const CommonFlags& common) {
  const StudyOptions options = options_of(flags);
  const ComputeDevice device = choose_device(flags.device, flags.threads);
  const TrackingCost cost = benchmark_tracking(options.model, options.train, flags.metrics, flags.rounds, device);
  if (common.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"every_10", cost.every_10},
                                              {"every_1", cost.every_1},
                                              {"step_seconds", cost.step_seconds},
                                              {"device", device.description}}
                           .dump(2));
  else
    fmt::print("{} on {}: tracking adds {:.1f} % to the time of a run every 10 steps, {:.1f} % at every step\n",
               flags.preset, device.description, 100 * cost.every_10, 100 * cost.every_1);
  return 0;
}

// Flags of what is trained and where.
void add_training_flags(CLI::App& command, BenchFlags& flags) {
  command.add_option("--preset", flags.preset, "tiny, 88m or 1.5b [tiny]")->type_name("NAME");
  command.add_option("--batch", flags.batch, "Sequences of a forward step")->type_name("N");
  command.add_option("--seq", flags.seq, "Tokens of a sequence")->type_name("N");
  command.add_option("--accumulation", flags.accumulation, "Forward steps of an update")->type_name("N");
  command.add_option("--threads", flags.threads, "Threads on the CPU [all cores]")->type_name("N");
  command.add_option("--device", flags.device, "auto, cpu or cuda [auto]")->type_name("NAME");
  command.add_option("--set", flags.assignments, "Any key of the configuration")->type_name("KEY=VALUE");
}

}  // namespace

void add_bench(CLI::App& app, CommonFlags& common, Command& chosen) {
  auto flags = std::make_shared<BenchFlags>();
  auto* bench = app.add_subcommand("bench", "How fast this machine is");
  bench->require_subcommand(1);
  auto* command = bench->add_subcommand("train", "Training steps on random tokens");
  add_training_flags(*command, *flags);
  command->add_option("--steps", flags->steps, "Timed steps [20]")->type_name("N");
  command->add_option("--warmup", flags->warmup, "Steps before them [3]")->type_name("N");
  add_common_flags(*command, common);
  command->callback([flags, &common, &chosen] { chosen = [flags, &common] { return bench_train(*flags, common); }; });

  auto* track = bench->add_subcommand("track", "What measuring every head adds to training");
  add_training_flags(*track, *flags);
  track->add_option("--rounds", flags->rounds, "Rounds of ten steps of each kind [10]")->type_name("N");
  track->add_option("--track", flags->metrics, "Groups and names of metrics [all]")->type_name("NAME,NAME");
  add_common_flags(*track, common);
  track->callback([flags, &common, &chosen] { chosen = [flags, &common] { return bench_track(*flags, common); }; });
}

}  // namespace headscope
