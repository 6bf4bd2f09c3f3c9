#include "experiments/train_run.h"

#include <ATen/Version.h>
#include <torch/headeronly/version.h>

#include "core/interrupt.h"
#include "core/parallel.h"
#include "experiments/training_run.h"
#include "figures/figure.h"
#include "heads/training_log.h"
#include "ops/torch_errors.h"
#include "ranks/ranks.h"

namespace headscope {
namespace {

TrainJob loop_job(const TrainRunJob& job, const Ranks& ranks) {
  TrainJob loop;
  loop.ranks = &ranks;
  loop.folder = job.folder.out;
  loop.label = "train";
  loop.resume_hint = resume_hint(train_command, job.folder.out);
  if (job.place.launched_here) loop.resume_hint += fmt::format(" --ranks {}", job.place.size);  // as they were started
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

// Training with its progress on the console.
TrainResult train_in(const TrainingRun& run, const TrainJob& job) {
  std::optional<Progress> progress;
  TrainObserver observer;
  observer.progress = [&](std::int64_t done, double loss) {
    if (progress)
      progress->step(std::isnan(loss) ? std::string() : fmt::format("loss {:.3f}", loss));
    else
      progress.emplace(run.console, job.label, "steps", static_cast<std::size_t>(job.options.steps()),
                       static_cast<std::size_t>(done));
  };
  observer.warning = [&](std::string_view text) { run.console.warn(text); };
  observer.resumed = [&](std::string_view text) { run.console.info(text); };
  observer.saving = [&] { run.console.info("saving"); };
  observer.before_writing = [&] { static_cast<void>(run.folder.place_of({})); };
  return train(job, run.corpus, run.device, observer);
}

// What must be the same on all ranks. Whether they compute on GPUs is, which ones is not.
nlohmann::ordered_json common_facts(const TrainRunJob& job, const ComputeDevice& device, const Corpus& corpus) {
  nlohmann::ordered_json config = to_json(job.options);
  config.erase("threads");
  config.erase("device");
  nlohmann::ordered_json facts = {{"version", HEADSCOPE_VERSION},
                                  {"torch", TORCH_VERSION},
                                  {"device", at::DeviceTypeName(device.device.type(), /*lower_case=*/true)}};
  if (device.device.is_cpu()) {  // others round differently
    facts["cpu"] = at::get_cpu_capability();
    facts["threads"] = device.threads;
  }
  facts["config"] = std::move(config);
  facts["data"] = corpus.hash;
  return facts;
}

std::string device_of(const TrainRunJob& job) {
  return job.place.several() ? own_device(job.options.device, job.place.local_rank) : job.options.device;
}

// Whether rank 0 has found the run to be complete; then all ranks end here.
bool is_complete(const Ranks& ranks, bool on_first) {
  const bool complete = ranks.from_first("complete", [&] { return on_first ? "yes" : "no"; }) == "yes";
  if (complete) ranks.last_barrier();
  return complete;
}

void train_and_summarise(const TrainRunJob& job, const TrainingRun& run, const Ranks& ranks, TrainRunOutcome& outcome) {
  const TrainResult result = train_in(run, loop_job(job, ranks));
  const RunFacts facts{run_title(outcome.out, job.options.preset), job.options.model.d_k};
  outcome.tokens_per_s = result.tokens_per_s;
  outcome.exchange_share = result.exchange_share;
  outcome.val_loss = result.losses.back().validation;
  outcome.summary = summarise(result.tracks, facts);
  write_summary(outcome.summary, facts, run.folder.writer());
  const std::filesystem::path place = run.folder.place();
  draw_or_warn(
      outcome.out, resume_hint(train_command, outcome.out), run.console,
      [&] { draw_summary(result.tracks, outcome.summary, facts, place, job.theme); },
      [&] { return run.folder.is_ours(); });
}

TrainRunOutcome run_in_folder(const TrainRunJob& job, TrainingRun& run, const Ranks& ranks) {
  TrainRunOutcome outcome;
  outcome.out = run.folder.path();
  static_cast<void>(ranks.from_first("folder", [&] { return std::filesystem::absolute(outcome.out).string(); }));
  outcome.device = run.device.description;
  outcome.ranks = ranks.size();
  outcome.unigram_entropy = run.corpus.unigram_entropy;
  outcome.true_entropy = run.corpus.true_entropy;
  const bool was_complete = is_complete(ranks, run.folder.already_complete());
  if (was_complete) {
    run.console.info(on_one_line(outcome.out.string()) + " is complete: nothing is left to do");
    read_result(outcome);
  }
  if (!was_complete) train_and_summarise(job, run, ranks, outcome);
  outcome.seconds = seconds_since(run.start);
  if (!was_complete) set_phase(run.folder.place(), phase::done);
  if (!was_complete)
    run.folder.finish(RunStatus::complete, {{"val_loss", outcome.val_loss},
                                            {"seconds", outcome.seconds},
                                            {"tokens_per_s", outcome.tokens_per_s},
                                            {"exchange_share", json_value(outcome.exchange_share)},
                                            {"inputs_xxh3_128", {{run.corpus.source, run.corpus.hash}}}});
  return outcome;
}

// "4 ranks through gloo, 1 thread each: the bytes of one process with --threads 1"
std::string ranks_text(const Ranks& ranks, const ComputeDevice& device, bool had_same_threads) {
  const std::string text = fmt::format("{} ranks through {}", ranks.size(), ranks.backend());
  if (!device.device.is_cpu()) return text;
  const std::string threads = fmt::format("{}, {} thread{} each", text, device.threads, device.threads == 1 ? "" : "s");
  return ranks.ordered() && had_same_threads
             ? fmt::format("{}: the bytes of one process with --threads {}", threads, device.threads)
             : threads;
}

// Of the manifest. One process adds gradients in the order of forward steps, too.
constexpr const char* in_order_fact = "ranks_add_in_order";

void warn_of_other_order(const TrainingRun& run, const Ranks& ranks) {
  const nlohmann::ordered_json& before = run.folder.before();
  if (run.folder.already_complete() || !before.is_object()) return;
  const bool was_in_order = before.value(in_order_fact, true), is_in_order = !ranks.several() || ranks.ordered();
  if (was_in_order == is_in_order) return;
  constexpr const char* in_order = "in the order of forward steps";
  constexpr const char* otherwise = "in the backend's own order";
  run.console.warn(
      fmt::format("{}: gradients were added {} until now, and {} from here on: sums may be rounded differently",
                  on_one_line(run.folder.path().string()), was_in_order ? in_order : otherwise,
                  is_in_order ? in_order : otherwise));
}

// Ranks of --ranks are all on this machine.
void warn_of_few_cores(const RankPlace& place, const ComputeDevice& device, Console& console) {
  const std::size_t cores = available_cores();
  if (!place.launched_here || !device.device.is_cpu() || static_cast<std::size_t>(place.size) <= cores) return;
  console.warn(fmt::format("{} ranks share {} core{}: they wait for one another, and fewer may be faster", place.size,
                           cores, cores == 1 ? "" : "s"));
}

// The first rank, or the only one: all files are its own.
TrainRunOutcome lead(TrainRunJob job, const Ranks& ranks, Console& console) {
  take_device(job, device_of(job));
  nlohmann::ordered_json facts;
  if (ranks.several())
    facts = {{"ranks", ranks.size()}, {"ranks_backend", ranks.backend()}, {in_order_fact, ranks.ordered()}};
  TrainingRun run = begin_training(
      job, train_command, std::move(facts), {job.options.seed}, /*shared=*/false, console,
      [&](const ComputeDevice& device, const Corpus& corpus) { ranks.compare(common_facts(job, device, corpus)); });
  warn_of_other_order(run, ranks);
  warn_of_few_cores(job.place, run.device, console);
  if (ranks.several() && !run.folder.already_complete())
    console.info(ranks_text(ranks, run.device, has_same_threads(run.folder, run.device)));
  return run.folder.live([&] { return with_short_torch_errors([&] { return run_in_folder(job, run, ranks); }); });
}

// Another rank: it trains, and writes and says nothing.
TrainRunOutcome follow(const TrainRunJob& job, const Ranks& ranks, Console& console) {
  const ComputeDevice device = choose_device(device_of(job), job.options.threads);
  const Corpus corpus = load_corpus_for(job.options, console);
  ranks.compare(common_facts(job, device, corpus));
  TrainRunJob here = job;
  here.folder.out = ranks.from_first("folder", {});
  if (!is_complete(ranks, false)) with_short_torch_errors([&] { train(loop_job(here, ranks), corpus, device); });
  return {};
}

}  // namespace

TrainRunOutcome run_training(const TrainRunJob& job, Console& console) {
  const InterruptGuard guard;
  if (job.place.launched_here) take_repeated_signals_as_one();
  validate(job.options);
  check_ranks(job.options.train, job.place.size);
  const Ranks ranks(
      job.place, job.options.ranks,
      [&] {
        const ComputeDevice device = choose_device(device_of(job));
        return RankDevice{device.device, gpu_id(device)};
      },
      [&](const std::string& whom) { console.info(whom); });
  return ranks.live([&] { return ranks.first() ? lead(job, ranks, console) : follow(job, ranks, console); });
}

}  // namespace headscope
