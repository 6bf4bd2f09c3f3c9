#include "experiments/train_run.h"

#include "core/interrupt.h"
#include "experiments/training_run.h"
#include "figures/figure.h"
#include "heads/training_log.h"
#include "ops/torch_errors.h"

namespace headscope {
namespace {

TrainJob loop_job(const TrainRunJob& job) {
  TrainJob loop;
  loop.folder = job.folder.out;
  loop.label = "train";
  loop.resume_hint = resume_hint(train_command, job.folder.out);
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
  if (!std::filesystem::exists(outcome.out / heads_table)) return;
  outcome.summary = read_summary(read_tracks(outcome.out), read_facts(outcome.out), outcome.out);
}

void train_and_summarise(const TrainRunJob& job, const TrainingRun& run, TrainRunOutcome& outcome) {
  const TrainResult result = train_in(run, loop_job(job));
  const RunFacts facts{run_title(outcome.out, job.options.preset), job.options.model.d_k};
  outcome.tokens_per_s = result.tokens_per_s;
  outcome.val_loss = result.losses.back().validation;
  outcome.summary = summarise(result.tracks, facts);
  write_summary(outcome.summary, facts, run.folder.place());
  draw_or_warn(outcome.out, resume_hint(train_command, outcome.out), run.console,
               [&] { draw_summary(result.tracks, outcome.summary, facts, run.folder.place(), job.theme); });
}

TrainRunOutcome run_in_folder(const TrainRunJob& job, TrainingRun& run) {
  TrainRunOutcome outcome;
  outcome.out = run.folder.path();
  outcome.device = run.device.description;
  outcome.unigram_entropy = run.corpus.unigram_entropy;
  outcome.true_entropy = run.corpus.true_entropy;
  const bool was_complete = run.folder.already_complete();
  if (was_complete) {
    run.console.info(on_one_line(outcome.out.string()) + " is complete: nothing is left to do");
    read_result(outcome);
  }
  if (!was_complete) train_and_summarise(job, run, outcome);
  outcome.seconds = seconds_since(run.start);
  if (!was_complete) set_phase(run.folder.place(), phase::done);
  if (!was_complete)
    run.folder.finish(RunStatus::complete, {{"val_loss", outcome.val_loss},
                                            {"seconds", outcome.seconds},
                                            {"tokens_per_s", outcome.tokens_per_s},
                                            {"inputs_xxh3_128", {{run.corpus.source, run.corpus.hash}}}});
  return outcome;
}

}  // namespace

TrainRunOutcome run_training(const TrainRunJob& given, Console& console) {
  const InterruptGuard guard;
  validate(given.options);
  TrainRunJob job = given;
  TrainingRun run = begin_training(job, train_command, {}, {job.options.seed}, console);
  return run.folder.live([&] { return with_short_torch_errors([&] { return run_in_folder(job, run); }); });
}

}  // namespace headscope
