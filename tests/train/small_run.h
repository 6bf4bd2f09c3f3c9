// A model and a corpus that train in a second.
#pragma once

#include "core/console.h"
#include "data/blocks.h"
#include "data/corpus.h"
#include "train/loop.h"

namespace headscope::test {

inline TrainJob small_job(const std::filesystem::path& folder) {
  TrainJob job;
  job.folder = folder;
  job.label = "test";
  job.resume_hint = "go on";
  job.model.d_model = 32;
  job.model.layers = 2;
  job.model.heads = 4;
  job.model.kv_heads = 2;
  job.model.d_k = 8;
  job.model.d_ff = 64;
  job.options.seq_len = 32;
  job.options.batch = 4;
  job.options.accumulation = 2;
  job.options.tokens = 12 * job.options.tokens_per_step();
  job.options.probe_every = 6;
  job.options.validation_batches = 2;
  job.options.checkpoint_every = 4;
  job.config = {{"name", "test"}};
  return job;
}

inline Corpus small_corpus(const TrainOptions& options) {
  Console quiet({.quiet = true});
  // Half of what the run needs: it goes through the data twice.
  const WantedTokens wanted{
      .train = options.tokens / 2,
      .validation = tokens_for_batches(options.validation_batches, options.batch, options.seq_len)};
  DataOptions data;
  data.validation_sample = false;
  return load_corpus(data, wanted, quiet);
}

inline NamedTensors weights_of(const Trainer& trainer) {
  NamedTensors weights;
  for_each_parameter(trainer.model(), [&](const std::string& name, ParameterKind, const at::Tensor& value) {
    weights.emplace_back(name, value.detach().clone());
  });
  return weights;
}

inline const ComputeDevice& cpu() {
  static const ComputeDevice device = choose_device("cpu");
  return device;
}

inline TrainResult run(const TrainJob& job, const TrainObserver& observer = {}) {
  return train(job, small_corpus(job.options), cpu(), observer);
}

}  // namespace headscope::test
