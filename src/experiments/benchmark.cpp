#include "experiments/benchmark.h"

#include <unistd.h>

#include "core/console.h"
#include "core/random.h"
#include "heads/run_tables.h"
#include "probe/probe.h"
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

double seconds_of(const ComputeDevice& device, const std::function<void()>& work) {
  synchronize(device);
  const auto start = Clock::now();
  work();
  synchronize(device);
  return seconds_since(start);
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

Trainer trainer_of(const Setup& setup, const Corpus& corpus, const ComputeDevice& device) {
  return {make_decoder(setup.model, /*seed=*/0, device.device), setup.train, /*seed=*/0, corpus, device};
}

// A folder that goes away with this object.
struct ScratchFolder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("headscope-{}", ::getpid());
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

TrainBenchmark benchmark_training(const Setup& setup, std::int64_t warmup, std::int64_t steps) {
  const ComputeDevice device = choose_device(setup.device, setup.threads);
  const Corpus corpus = random_corpus(setup, warmup + steps);
  Trainer trainer = trainer_of(setup, corpus, device);
  TrainBenchmark result;
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < warmup + steps; ++i) {
    double loss = 0;
    const double elapsed = seconds_of(device, [&] { loss = trainer.step().loss; });
    if (i >= warmup) seconds.push_back(elapsed);
    if (i == 0) result.loss_first = loss;
    result.loss_last = loss;
  }
  result.tokens_per_s = static_cast<double>(setup.train.tokens_per_step()) / median(seconds);
  result.peak_memory_mb = peak_memory_mb(device);
  result.device = device.description;
  return result;
}

TrackingCost benchmark_tracking(const Setup& setup, const std::string& metrics, std::int64_t rounds) {
  const ComputeDevice device = choose_device(setup.device, setup.threads);
  constexpr std::int64_t steps = tracking_steps_per_round / 3;
  const Corpus corpus = random_corpus(setup, tracking_steps(rounds));
  Trainer trainer = trainer_of(setup, corpus, device);
  const MetricSelection chosen(metrics, "--track");
  const ScratchFolder folder;
  RunTables tables(folder.path);
  const auto ten_steps = [&](std::int64_t every) {
    return seconds_of(device, [&] {
      for (std::int64_t i = 0; i < steps; ++i) {
        HeadMeasurer measurer(chosen);
        const Measured when{{trainer.steps_done(), trainer.tokens_done()}, "train"};
        const bool due = every > 0 && i % every == 0;
        if (due) tables.add_gains(when, gains_of(trainer.model()), /*with_vectors=*/true);
        trainer.step(due ? measurer.hooks() : Hooks());
        tables.add_heads(when, measurer.finish().layers);
      }
      tables.flush();
    });
  };
  std::vector<double> plain, every_10, every_1;
  ten_steps(1);  // warm-up
  for (std::int64_t round = 0; round < rounds; ++round) {
    plain.push_back(ten_steps(0));
    every_10.push_back(ten_steps(10) / plain.back() - 1);
    every_1.push_back(ten_steps(1) / plain.back() - 1);
  }
  return {median(every_10), median(every_1), median(plain) / steps, device.description};
}

}  // namespace headscope
