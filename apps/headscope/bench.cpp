#include "command.h"
#include "core/bounds.h"
#include "heads/metrics.h"
#include "settings/setup.h"
#include "torch_half.h"

namespace headscope {
namespace {

struct BenchFlags {
  std::vector<ConfigEntry> entries;  // flags, in the order in which they were given
  std::int64_t steps = 20, warmup = 3;
  std::int64_t rounds = 10;
  TrackOptions track{.every = 0};
  bool parts = false;
};

// The options of `steps` updates on random tokens.
Setup options_of(const BenchFlags& flags, const Factor& steps) {
  constexpr std::int64_t most_random_tokens = 1 << 28;  // they are made beforehand and kept in memory
  Setup options = resolve_setup<Setup>(flags.entries);
  TrainOptions& train = options.train;
  train.probe_every = train.accumulation;  // none is made
  train.validation_batches = 1;
  const std::int64_t tokens = checked_product({{"train.batch", train.batch},
                                               {"train.seq_len", train.seq_len},
                                               {"train.accumulation", train.accumulation},
                                               steps},
                                              most_random_tokens, "random tokens");
  train.tokens = std::max<std::int64_t>(tokens, 1);  // what is not positive has a line of its own in validate()
  validate(options);
  return options;
}

constexpr std::int64_t most_steps = 1'000'000;  // a benchmark takes minutes

int bench_train(const BenchFlags& flags, const CommonFlags& common) {
  check_size("--steps", flags.steps, 1, most_steps);
  check_size("--warmup", flags.warmup, 0, most_steps);
  check_size("--track-every", flags.track.every, 0, most_steps);
  const MetricSelection known(flags.track.metrics, "--track");  // refused before the tokens are made
  const Setup options = options_of(flags, {"steps", flags.warmup + flags.steps});
  const TrainBenchmark result =
      torch_half().time_training(options, flags.warmup, flags.steps, flags.track, flags.parts);
  if (common.json)
    fmt::print("{}", json_text(nlohmann::ordered_json{{"tokens_per_s", result.tokens_per_s},
                                                      {"step_ms_median", result.step_ms_median},
                                                      {"tflops", result.tflops},
                                                      {"first_step_s", result.first_step_s},
                                                      {"peak_memory_mb", result.peak_memory_mb},
                                                      {"loss_first", result.loss_first},
                                                      {"loss_last", result.loss_last},
                                                      {"device", result.device},
                                                      {"preset", options.preset},
                                                      {"batch", options.train.batch},
                                                      {"seq_len", options.train.seq_len},
                                                      {"accumulation", options.train.accumulation},
                                                      {"steps", flags.steps},
                                                      {"track_every", flags.track.every},
                                                      {"parts_ms", result.parts_ms}}));
  else
    fmt::print(
        "{} on {}: {:.0f} tokens/s, {:.1f} TFLOP/s, {:.2f} ms a step (median over {} steps); first step after {:.1f} "
        "s, peak memory {:.0f} MiB\n",
        options.preset, result.device, result.tokens_per_s, result.tflops, result.step_ms_median, flags.steps,
        result.first_step_s, result.peak_memory_mb);
  if (!common.json)
    for (const auto& [part, milliseconds] : result.parts_ms) fmt::print("  {:<12} {:8.3f} ms\n", part, milliseconds);
  return 0;
}

int bench_track(const BenchFlags& flags, const CommonFlags& common) {
  check_size("--rounds", flags.rounds, 1, most_steps / tracking_steps_per_round);
  const MetricSelection known(flags.track.metrics, "--track");  // refused before the tokens are made
  const Setup options = options_of(flags, {"steps", tracking_steps(flags.rounds)});
  const TrackingCost cost = torch_half().time_tracking(options, flags.track.metrics, flags.rounds);
  if (common.json)
    fmt::print("{}", json_text(nlohmann::ordered_json{{"every_10", cost.every_10},
                                                      {"every_1", cost.every_1},
                                                      {"step_seconds", cost.step_seconds},
                                                      {"device", cost.device}}));
  else
    fmt::print("{} on {}: tracking adds {:.1f} % to the time of a run every 10 steps, {:.1f} % at every step\n",
               options.preset, cost.device, 100 * cost.every_10, 100 * cost.every_1);
  return 0;
}

struct BenchDeviceFlags {
  std::string device = "auto";
  std::int64_t threads = 0;
};

int bench_device(const BenchDeviceFlags& flags, const CommonFlags& common) {
  const DeviceBenchmark result = torch_half().time_device(flags.device, flags.threads);
  const auto known = [](const auto& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  };
  if (common.json) {
    fmt::print("{}", json_text(nlohmann::ordered_json{{"gpu", known(result.gpu)},
                                                      {"driver", known(result.driver)},
                                                      {"cudnn", known(result.cudnn)},
                                                      {"nccl", known(result.nccl)},
                                                      {"gemm_tflops", result.gemm_tflops},
                                                      {"gemm", result.gemm},
                                                      {"copy_gb_s", result.copy_gb_s},
                                                      {"capability", known(result.capability)},
                                                      {"memory_gb", known(result.memory_gb)},
                                                      {"device", result.device}}));
    return 0;
  }
  if (result.gpu)
    fmt::print("{}: compute capability {}, {:.0f} GB, driver {}, cuDNN {}, NCCL {}\n", *result.gpu, *result.capability,
               *result.memory_gb, result.driver.value_or("unknown"), result.cudnn.value_or("unknown"),
               result.nccl.value_or("unknown"));
  fmt::print("{}: {:.3g} TFLOP/s ({}), {:.4g} GB/s read and written by a copy\n", result.device, result.gemm_tflops,
             result.gemm, result.copy_gb_s);
  return 0;
}

// Flags of what is trained and where.
void add_training_flags(CLI::App& command, std::vector<ConfigEntry>& entries) {
  add_key_flag(command, entries, "--preset", "preset", "NAME", "tiny, 88m or 1.5b [tiny]");
  add_key_flag(command, entries, "--batch", "train.batch", "N", "Sequences of a forward step");
  add_key_flag(command, entries, "--seq", "train.seq_len", "N", "Tokens of a sequence");
  add_key_flag(command, entries, "--accumulation", "train.accumulation", "N", "Forward steps of an update");
  add_key_flag(command, entries, "--threads", "threads", "N", "Threads on the CPU [OMP_NUM_THREADS, or all cores]");
  add_key_flag(command, entries, "--device", "device", "NAME", "auto, cpu or cuda (cuda:1: the second GPU) [auto]");
  add_set_flag(command, entries, "Any key of the configuration");
}

void add_bench_device(CLI::App& bench, CommonFlags& common, Command& chosen) {
  auto flags = std::make_shared<BenchDeviceFlags>();
  auto* command = bench.add_subcommand("device", "A matrix product and a copy; versions of driver and libraries");
  command->add_option("--device", flags->device, "auto, cpu or cuda (cuda:1: the second GPU) [auto]")
      ->type_name("NAME");
  add_number_flag(*command, "--threads", flags->threads, "N", "Threads on the CPU [OMP_NUM_THREADS, or all cores]");
  add_common_flags(*command, common);
  when_chosen(*command, chosen, [flags, &common] { return bench_device(*flags, common); });
}

}  // namespace

void add_bench(CLI::App& app, CommonFlags& common, Command& chosen) {
  auto flags = std::make_shared<BenchFlags>();
  auto* bench = app.add_subcommand("bench", "How fast this machine is");
  bench->require_subcommand(1);
  auto* command = bench->add_subcommand("train", "Training steps on random tokens");
  add_training_flags(*command, flags->entries);
  add_number_flag(*command, "--steps", flags->steps, "N", "Timed steps [20]");
  add_number_flag(*command, "--warmup", flags->warmup, "N", "Steps before them [3]");
  command->add_flag("--parts", flags->parts, "Time the parts of a step, too (on a GPU)");
  add_number_flag(*command, "--track-every", flags->track.every, "N",
                  "Steps between measurements of every head, which count; 0: none [0]");
  command->add_option("--track", flags->track.metrics, "Groups and names of metrics [all]")->type_name("NAME,NAME");
  add_common_flags(*command, common);
  when_chosen(*command, chosen, [flags, &common] { return bench_train(*flags, common); });

  auto* track = bench->add_subcommand("track", "What measuring every head adds to training");
  add_training_flags(*track, flags->entries);
  add_number_flag(*track, "--rounds", flags->rounds, "N", "Rounds of ten steps of each kind [10]");
  track->add_option("--track", flags->track.metrics, "Groups and names of metrics [all]")->type_name("NAME,NAME");
  add_common_flags(*track, common);
  when_chosen(*track, chosen, [flags, &common] { return bench_track(*flags, common); });
  add_bench_device(*bench, common, chosen);
}

}  // namespace headscope
