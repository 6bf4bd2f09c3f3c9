#include "experiments/train_run.h"

#include <chrono>

#include "core/interrupt.h"
#include "experiments/estimate.h"
#include "figures/draw_or_warn.h"
#include "figures/theme.h"
#include "formats/parquet_table.h"
#include "train/loop.h"
#include "train/torch_errors.h"

namespace headscope {
namespace {

using Clock = std::chrono::steady_clock;

TrainJob loop_job(const TrainRunJob& job, const RunFolder& folder) {
  TrainJob loop;
  loop.folder = job.folder.out;
  loop.label = "train";
  loop.resume_hint = fmt::format("go on with --resume --out {}", job.folder.out.string());
  loop.model = job.options.model;
  loop.options = job.options.train;
  loop.track = job.options.track;
  loop.seed = job.options.seed;
  loop.config = to_json(job.options);
  loop.before_writing = [&folder] { folder.check_in_place(); };
  return loop;
}

// What the tables say: written and drawn, or, of a run that was complete before, only shown again (no `theme`).
void conclude(TrainRunOutcome& outcome, const std::optional<std::string>& theme, Console& console) {
  outcome.val_loss = read_parquet(outcome.out / "probes.parquet").numbers("val_loss").back();
  if (!std::filesystem::exists(outcome.out / "heads.parquet")) return;
  const RunTracks tracks = read_tracks(outcome.out);
  const RunFacts facts = facts_of_run(outcome.out);
  if (!theme) {
    outcome.findings = find(tracks);
    if (has_roles(tracks)) outcome.roles = roles_again(tracks, facts, outcome.out);
    return;
  }
  outcome.findings = write_summary(tracks, facts, outcome.out);
  if (has_roles(tracks))
    outcome.roles = write_roles(tracks, facts, default_role_definition(), /*from_training=*/false, outcome.out);
  draw_or_warn(outcome.out, console, [&] {
    draw_tracks(tracks, facts, outcome.out, *theme);
    if (outcome.roles) draw_roles(*outcome.roles, facts, outcome.out, *theme);
  });
}

TrainRunOutcome run_in_folder(const TrainRunJob& job, const Corpus& corpus, const ComputeDevice& device,
                              RunFolder& folder, Clock::time_point start, Console& console) {
  TrainRunOutcome outcome;
  outcome.out = folder.path();
  outcome.device = device.description;
  outcome.unigram_entropy = corpus.unigram_entropy;
  outcome.true_entropy = corpus.true_entropy;
  const bool was_complete = folder.already_complete();
  if (!was_complete) outcome.tokens_per_s = train(loop_job(job, folder), corpus, device, console).tokens_per_s;
  folder.check_in_place();
  conclude(outcome, was_complete ? std::nullopt : std::optional(job.theme), console);
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
                                .inputs = inputs_of(job.options.data)});
  return folder.live([&] {
    return with_short_torch_errors([&] { return run_in_folder(job, corpus, device, folder, start, console); });
  });
}

}  // namespace headscope
