#include "experiments/benchmark.h"

#include <unistd.h>

#include <ctime>
#include <fstream>
#include <sstream>

#include "core/console.h"
#include "core/random.h"
#include "heads/run_tables.h"
#include "stats/sample_moments.h"
#include "train/trainer.h"

namespace headscope {
namespace {

Tokens random_tokens(std::int64_t count, std::int64_t vocabulary, NumpyGenerator& generator) {
  std::vector<std::uint32_t> values(static_cast<std::size_t>(count));
  for (std::uint32_t& value : values)
    value = static_cast<std::uint32_t>(generator.integers(static_cast<std::uint64_t>(vocabulary)));
  const auto buffer = std::make_shared<TokenBuffer>(vocabulary);
  buffer->append(values);
  const TokenRange all{0, count};
  return {buffer, buffer->span(), {&all, 1}};
}

// Random tokens for so many steps, and the validation batches.
Corpus random_corpus(const Setup& setup, std::int64_t steps) {
  const TrainOptions& options = setup.train;
  const std::int64_t vocabulary = setup.model.vocabulary;
  NumpyGenerator generator(0);
  Corpus corpus;
  corpus.train = random_tokens(steps * options.tokens_per_step() + 1, vocabulary, generator);
  corpus.validation = random_tokens(tokens_for_batches(options.validation_batches, options.batch, options.seq_len),
                                    vocabulary, generator);
  return corpus;
}

// A folder that goes away with this object.
struct ScratchFolder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("headscope-{}", ::getpid());
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

constexpr std::int64_t steps_per_block = tracking_steps_per_round / 3;

// Training with the clock around it. Everything that knows how a step and its measurement are made is here.
class TimedTraining {
 public:
  TimedTraining(const Setup& setup, const Corpus& corpus, const ComputeDevice& device, const std::string& metrics)
      : device_(device),
        chosen_(metrics, "--track"),
        trainer_(make_decoder(setup.model, /*seed=*/0, device.device), setup.train, /*seed=*/0, corpus, device),
        tables_(folder_.path) {}

  // Seconds of so many steps; those whose number is a multiple of `every` are measured, none if it is 0.
  double steps(std::int64_t count, std::int64_t every) {
    synchronize(device_);
    const auto start = Clock::now();
    for (std::int64_t i = 0; i < count; ++i)
      add(trainer_.step(every > 0 && trainer_.steps_done() % every == 0 ? &chosen_ : nullptr));
    add(trainer_.wait());
    synchronize(device_);
    return seconds_since(start);
  }
  [[nodiscard]] double last_loss() const { return last_loss_; }

  // Milliseconds of each part of a step, measured ones among them as in steps().
  std::map<std::string, double> parts(std::int64_t every) {
    PartTimer timer(device_);
    if (!trainer_.time_parts(&timer))
      fail_input("--parts: parts are timed on a GPU, for models that are trained without autograd; leave it out");
    steps(steps_per_block, every);
    trainer_.time_parts(nullptr);
    std::map<std::string, double> sums = timer.milliseconds();
    for (auto& [part, sum] : sums) sum /= static_cast<double>(steps_per_block);
    return sums;
  }

 private:
  // As a run does it (train/loop.cpp): what an update gave is written while the next one is computed.
  void add(const std::optional<StepRecord>& update) {
    if (!update) return;
    last_loss_ = update->loss;
    if (!update->measurer) return;
    const HeadMeasurements heads = update->measurer->finish();
    const Measured measured{update->before, "train"};
    tables_.add_heads(measured, heads.layers);
    tables_.add_gains(measured, heads.gains, /*with_vectors=*/true);
    if (tables_.flush_is_due()) tables_.flush();
  }

  const ComputeDevice& device_;
  MetricSelection chosen_;
  Trainer trainer_;
  ScratchFolder folder_;
  RunTables tables_;
  double last_loss_ = 0;
};

// What the system says, to a hundredth of a second: libraries that were loaded before main() count.
double seconds_since_process_start() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(text.rfind(')') + 1));  // behind the name, which may hold anything
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;  // 22: starttime, ticks after the start of the machine
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) -
         std::stod(field) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

TrainBenchmark benchmark_training(const Setup& setup, std::int64_t warmup, std::int64_t steps,
                                  const TrackOptions& track, bool parts) {
  const ComputeDevice device = choose_device(setup.device, setup.threads);
  const Corpus corpus = random_corpus(setup, warmup + steps + (parts ? steps_per_block : 0));
  TimedTraining training(setup, corpus, device, track.metrics);
  TrainBenchmark result;
  std::vector<double> step_seconds;
  const std::int64_t total = warmup + steps, block = std::max(steps_per_block, track.every);
  for (std::int64_t done = 0, count = 0; done < total; done += count) {
    // The first step alone, the other steps before the clock, then blocks.
    count = done == 0 ? 1 : done < warmup ? warmup - done : std::min(block, total - done);
    const double seconds = training.steps(count, track.every);
    if (done == 0) result.first_step_s = seconds_since_process_start();
    if (done == 0) result.loss_first = training.last_loss();
    if (done >= warmup) step_seconds.push_back(seconds / static_cast<double>(count));
  }
  const double seconds = median(step_seconds);
  result.step_ms_median = 1e3 * seconds;
  result.tokens_per_s = static_cast<double>(setup.train.tokens_per_step()) / seconds;
  result.tflops = 1e-12 * result.tokens_per_s * training_flops_per_token(setup.model, setup.train.seq_len);
  result.loss_last = training.last_loss();
  result.peak_memory_mb = peak_memory_mb(device);
  result.device = device.description;
  if (parts) result.parts_ms = training.parts(track.every);
  return result;
}

TrackingCost benchmark_tracking(const Setup& setup, const std::string& metrics, std::int64_t rounds) {
  const ComputeDevice device = choose_device(setup.device, setup.threads);
  const Corpus corpus = random_corpus(setup, tracking_steps(rounds));
  TimedTraining training(setup, corpus, device, metrics);
  const auto ten_steps = [&](std::int64_t every) { return training.steps(steps_per_block, every); };
  std::vector<double> plain, every_10, every_1;
  ten_steps(1);  // warm-up
  for (std::int64_t round = 0; round < rounds; ++round) {
    plain.push_back(ten_steps(0));
    every_10.push_back(ten_steps(10) / plain.back() - 1);
    every_1.push_back(ten_steps(1) / plain.back() - 1);
  }
  return {median(every_10), median(every_1), median(plain) / steps_per_block, device.description};
}

}  // namespace headscope
