#include "train/benchmark.h"

#include <chrono>

#include "core/random.h"
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

}  // namespace

TrainBenchmark benchmark_training(const DecoderConfig& model, const TrainOptions& options, std::int64_t warmup,
                                  std::int64_t steps, const ComputeDevice& device) {
  NumpyGenerator generator(0);
  Corpus corpus;
  corpus.train = random_tokens((warmup + steps) * options.tokens_per_step() + 1, model.vocabulary, generator);
  corpus.validation = random_tokens(tokens_for_batches(options.validation_batches, options.batch, options.seq_len),
                                    model.vocabulary, generator);
  Trainer trainer(model, options, /*seed=*/0, corpus, device);
  TrainBenchmark result;
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < warmup + steps; ++i) {
    synchronize(device);
    const auto start = std::chrono::steady_clock::now();
    const double loss = trainer.step().loss;
    synchronize(device);
    if (i >= warmup) seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    if (i == 0) result.loss_first = loss;
    result.loss_last = loss;
  }
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  result.tokens_per_s = static_cast<double>(options.tokens_per_step()) / *middle;
  result.peak_memory_mb = peak_memory_mb(device);
  return result;
}

}  // namespace headscope
