// What `headscope train` and `headscope study` share: how a run that trains begins, and training in its folder.
#pragma once

#include "core/console.h"
#include "experiments/device_facts.h"
#include "experiments/estimate.h"
#include "experiments/train_run.h"
#include "figures/theme.h"
#include "run/run_folder.h"
#include "train/loop.h"

namespace headscope {

// What a run works with.
struct TrainingRun {
  Clock::time_point start;
  ComputeDevice device;
  Corpus corpus;
  RunFolder folder;
  Console& console;
};

// What the manifest says of the held-out text: all of it, the fixed batches, and the first of them, which probes
// measure.
inline nlohmann::ordered_json held_out_facts(const TrainOptions& options, const Corpus& corpus) {
  const std::vector<std::int64_t> blocks = fixed_blocks(corpus.validation.size(), options.validation_batches,
                                                        options.batch, options.seq_len, corpus.sampled);
  const std::span probe = std::span(blocks).first(static_cast<std::size_t>(options.batch));
  const auto documents = [&](std::span<const std::int64_t> some) {
    return count_documents(corpus.validation_starts, some, options.seq_len);
  };
  return {{"tokens", corpus.validation.size()},
          {"documents", corpus.validation_starts.size()},
          {"blocks", corpus.sampled ? "sample" : "first"},
          {"documents_in_batches", documents(blocks)},
          {"documents_in_probe", documents(probe)},
          {"probe_blocks", std::vector(probe.begin(), probe.end())}};
}

// The run that is gone on with was trained with as many threads of the CPU as now, or it begins.
inline bool has_same_threads(const RunFolder& folder, const ComputeDevice& device) {
  return threads_in(folder.before()).value_or(device.threads) == device.threads;
}

// Another number of threads may round sums in another way.
inline void warn_of_other_threads(const RunFolder& folder, const ComputeDevice& device, Console& console) {
  if (folder.already_complete() || !device.device.is_cpu() || has_same_threads(folder, device)) return;
  const std::int64_t before = *threads_in(folder.before());
  console.warn(
      fmt::format("{} was trained with {} thread{} until now, with {} from here on: sums may be rounded differently; "
                  "--threads {} keeps "
                  "the bytes",
                  on_one_line(folder.path().string()), before, before == 1 ? "" : "s", device.threads, before));
}

// One of several processes computes there; the configuration is the same for all.
template <class Options>
void take_device(TrainingJob<Options>& job, const std::string& own) {
  if (own == job.options.device) return;
  job.worker_device = own;
  job.options.device = "cuda";
}

// Opens the folder of the run when nothing is wrong with the job and its data. The job's device becomes the one that
// was chosen. `facts` are for the manifest, which gets device_facts(), threads, parameters, seeds and held_out_facts(),
// too. `shared`: other processes may train in the folder. `check` may refuse both before there is a folder.
template <class Options>
TrainingRun begin_training(TrainingJob<Options>& job, const char* command, nlohmann::ordered_json facts,
                           const std::vector<std::uint64_t>& seeds, bool shared, Console& console,
                           const std::function<void(const ComputeDevice&, const Corpus&)>& check = {}) {
  const auto start = Clock::now();
  theme_named(job.theme);  // an unknown name is refused before the work, not after it
  const bool is_worker = !job.worker_device.empty();
  ComputeDevice device = choose_device(is_worker ? job.worker_device : job.options.device, job.options.threads);
  if (!is_worker) job.options.device = device.name();
  check_out(job.folder, command, RunWrites::as_it_goes);
  check_memory(job.options.model, device);
  check_device(job.options.model, job.options.train, device.device);
  for (const std::string& notice : notices(job.options)) console.info(notice);
  Corpus corpus = load_corpus_for(job.options, console);  // before the folder: bad data leaves nothing behind
  if (check) check(device, corpus);
  facts.update(device_facts(device));
  facts.update({{"threads", device.threads},
                {"nondeterministic", nondeterministic_operations(job.options.model, job.options.train, device.device)},
                {"parameters", count_parameters(job.options.model).total},
                {"seeds", seeds},
                {"entropy", entropy_json(corpus.unigram_entropy, corpus.true_entropy)},
                {"held_out", held_out_facts(job.options.train, corpus)}});
  RunFolder folder(job.folder, {.command = command,
                                .config = to_json(job.options),
                                .facts = std::move(facts),
                                .writes = RunWrites::as_it_goes,
                                .free_keys = free_keys_of_training(),
                                .in_current_words = [](auto config) { return in_current_words(std::move(config)); },
                                .inputs = inputs_of(job.options.data),
                                .shared = shared,
                                .say = [&console](const std::string& text) { console.info(text); }});
  warn_of_other_threads(folder, device, console);
  return {start, std::move(device), std::move(corpus), std::move(folder), console};
}

}  // namespace headscope
