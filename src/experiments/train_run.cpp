#include "experiments/train_run.h"

#include <chrono>

#include "core/interrupt.h"
#include "experiments/estimate.h"
#include "experiments/train_with_progress.h"
#include "figures/figure.h"
#include "figures/theme.h"
#include "ops/torch_errors.h"

namespace headscope {
namespace {

using Clock = std::chrono::steady_clock;

TrainJob loop_job(const TrainRunJob& job) {
  TrainJob loop;
  loop.folder = job.folder.out;
  loop.label = "train";
  loop.resume_hint = fmt::format("go on with --resume --out {}", job.folder.out.string());
  loop.model = job.options.model;
  loop.options = job.options.train;
  loop.track = job.options.track;
  loop.seed = job.options.seed;
  loop.config = to_json(job.options);
  return loop;
}

// A run that was complete before is read and shown again.
void read_result(TrainRunOutcome& outcome) {
  outcome.val_loss = read_losses(outcome.out).back().validation;
  if (!std::filesystem::exists(outcome.out / "heads.parquet")) return;
  outcome.summary = read_summary(read_tracks(outcome.out), read_facts(outcome.out), outcome.out);
}

void train_and_summarise(const TrainRunJob& job, const Corpus& corpus, const ComputeDevice& device,
                         const RunFolder& folder, TrainRunOutcome& outcome, Console& console) {
  const TrainResult result = train_with_progress(loop_job(job), corpus, device, folder, console);
  const RunFacts facts{job.options.preset, job.options.model.d_k};
  outcome.tokens_per_s = result.tokens_per_s;
  outcome.val_loss = result.losses.back().validation;
  outcome.summary = summarise(result.tracks, facts);
  write_summary(outcome.summary, facts, folder.place());
  draw_or_warn(outcome.out, console,
               [&] { draw_summary(result.tracks, outcome.summary, facts, folder.place(), job.theme); });
}

TrainRunOutcome run_in_folder(const TrainRunJob& job, const Corpus& corpus, const ComputeDevice& device,
                              RunFolder& folder, Clock::time_point start, Console& console) {
  TrainRunOutcome outcome;
  outcome.out = folder.path();
  outcome.device = device.description;
  outcome.unigram_entropy = corpus.unigram_entropy;
  outcome.true_entropy = corpus.true_entropy;
  const bool was_complete = folder.already_complete();
  if (was_complete)
    read_result(outcome);
  else
    train_and_summarise(job, corpus, device, folder, outcome, console);
  outcome.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (!was_complete)
    folder.finish(RunStatus::complete, {{"val_loss", outcome.val_loss},
                                        {"seconds", outcome.seconds},
                                        {"tokens_per_s", outcome.tokens_per_s},
                                        {"inputs_xxh3_128", {{corpus.source, corpus.hash}}}});
  return outcome;
}

}  // namespace

TrainRunOutcome run_training(const TrainRunJob& given, Console& console) {
  const auto start = Clock::now();
  const InterruptGuard guard;
  validate(static_cast<const Setup&>(given.options));
  validate(given.options.track);
  theme_named(given.theme);  // an unknown name is refused before the work, not after it
  const ComputeDevice device = choose_device(given.options.device, given.options.threads);
  TrainRunJob job = given;
  job.options.device = device.device.is_cpu() ? "cpu" : "cuda";
  check_out(job.folder, train_command, RunWrites::as_it_goes);
  check_memory(job.options.model, device);
  const Corpus corpus = load_corpus_for(job.options, console);  // before the folder: bad data leaves nothing behind
  const nlohmann::ordered_json facts = {{"device", device.description},
                                        {"threads", device.threads},
                                        {"parameters", count_parameters(job.options.model).total},
                                        {"seeds", {job.options.seed}}};
  RunFolder folder(job.folder, {.command = train_command,
                                .command_line = job.command_line,
                                .config = to_json(job.options),
                                .facts = facts,
                                .writes = RunWrites::as_it_goes,
                                .free_keys = {"threads"},
                                .in_current_words = [](auto config) { return in_current_words(std::move(config)); },
                                .inputs = inputs_of(job.options.data)});
  return folder.live([&] {
    return with_short_torch_errors([&] { return run_in_folder(job, corpus, device, folder, start, console); });
  });
}

}  // namespace headscope
