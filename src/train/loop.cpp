#include "train/loop.h"

#include <c10/util/Exception.h>

#include <regex>

#include "core/console.h"
#include "core/missing.h"
#include "formats/parquet_table.h"
#include "heads/loss_spikes.h"
#include "heads/training_log.h"
#include "model/checkpoint_files.h"
#include "ops/torch_errors.h"
#include "train/checkpoint.h"
#include "train/slow_ranks.h"

namespace headscope {
namespace {

ExpectedMoments moments_of(const TrainJob& job) {
  ExpectedMoments expected;
  expected.most = job.keep_moments;
  const std::int64_t steps = job.options.steps();
  if (job.track.every > 0) expected.train = static_cast<std::size_t>((steps + job.track.every - 1) / job.track.every);
  for (std::int64_t step = 0; step <= steps; ++step) expected.probe += job.options.probes_at(step) ? 1 : 0;
  return expected;
}

class TrainRun {
 public:
  TrainRun(const TrainJob& job, const Corpus& corpus, const ComputeDevice& device, const TrainObserver& observer)
      : job_(job),
        ranks_(*job.ranks),
        observer_(observer),
        chosen_(job.track.metrics, "track.metrics"),
        checkpoints_(job.folder / checkpoints_name),
        latest_(checkpoint_to_go_on_from()),
        trainer_(latest_ ? empty_decoder(job.model, device.device) : make_decoder(job.model, job.seed, device.device),
                 job.options, job.seed, corpus, device, ranks_) {
    if (latest_) state_ = load_checkpoint(*latest_, trainer_);
    if (latest_ && state_.data_hash != corpus.hash)
      throw AgreedError(Fault::input,
                        fmt::format("{}: the data is not what it was when the run began ({}); give the same data, or "
                                    "start anew with --overwrite",
                                    latest_->string(), corpus.source));
    state_.data_hash = corpus.hash;
    state_.config = job.config;
    if (!ranks_.first()) return;
    tables_.emplace(job.folder, moments_of(job), observer.before_writing);
    tables_->truncate(state_.rows);
  }

  // Whatever ends the training is in its progress and events.
  TrainResult run() {
    if (!ranks_.first()) return follow();
    begin_log();
    try {
      return run_to_the_result();
    } catch (const Error& error) {
      log_end(error.fault() == Fault::interrupted ? phase::interrupted : phase::failed, error.what());
      throw;
    } catch (const std::exception& error) {
      log_end(phase::failed, error.what());
      throw;
    }
  }

 private:
  // Ranks other than the first do the same and write nothing.
  TrainResult follow() {
    train_or_diverge();
    return {};
  }

  TrainResult run_to_the_result() {
    std::optional<Divergence> divergence = train_or_diverge();
    if (divergence) note("warning", divergence->moment, divergence->found);
    tables_->merge();
    TrainResult result{tables_->tracks(), tables_->losses(), seconds_ > 0 ? tokens_ / seconds_ : 0};
    if (ranks_.connected() && seconds_ > 0) result.exchange_share = exchange_seconds_ / seconds_;
    result.divergence = std::move(divergence);
    // A run that was stopped after its last probe does not have them yet.
    if (needs_rank_errors() && !result.divergence)
      result.rank_errors = rank_errors_ ? *rank_errors_ : trainer_.rank_errors(chosen_);
    if (result.divergence)
      log_end(phase::diverged,
              fmt::format("diverged after step {} of {}", result.divergence->moment.step, job_.options.steps()));
    else
      log_end(phase::figures, fmt::format("all {} steps are done", job_.options.steps()));
    return result;
  }

  std::optional<Divergence> train_or_diverge() {
    try {
      train_to_the_end();
      ranks_.last_barrier();
      return std::nullopt;
    } catch (const NotFinite& failure) {
      const Moment now = moment_now();
      save();
      if (!job_.diverges_to_result)
        throw AgreedError(Fault::runtime,
                          fmt::format("{}: {}; the state before the step is saved in {}; {}", job_.label, failure.found,
                                      checkpoints_.string(), NotFinite::advice));
      ranks_.last_barrier();
      return Divergence{now, failure.found};
    }
  }

  // Rank 0 has looked at the folder; the others go on from the same one.
  [[nodiscard]] std::optional<std::filesystem::path> checkpoint_to_go_on_from() const {
    const std::string found = ranks_.from_first("checkpoint", [&] {
      const auto latest = latest_checkpoint(checkpoints_);
      if (!latest) return std::string();
      return (ranks_.several() ? std::filesystem::absolute(*latest) : *latest).string();
    });
    return found.empty() ? std::nullopt : std::optional<std::filesystem::path>(found);
  }

  [[nodiscard]] Moment moment_now() const { return {trainer_.steps_done(), trainer_.tokens_done()}; }

  void begin_log() {
    log_.emplace(job_.folder, latest_ ? std::optional(trainer_.steps_done()) : std::nullopt);
    last_saved_ = log_->last_step("checkpoint");
    Numbers losses;
    scan_parquet(job_.folder / steps_table, {"loss"}, [&](const Table& steps) {
      const Numbers& more = steps.numbers("loss");
      losses.insert(losses.end(), more.begin(), more.end());
    });
    spikes_ = LossSpikes(losses, log_->last_step("spike"));
    progress_.emplace(job_.folder, moment_now(), losses.empty() ? missing : losses.back(), job_.options.steps(),
                      observer_.before_writing);
    progress_->enter(phase::training);
    if (latest_) {
      const std::string text =
          fmt::format("goes on from {}/{}{}", checkpoints_name, latest_->filename().string(), by_ranks());
      log_->append("resume", moment_now(), text);
      observer_.resumed(text);
    } else if (!log_->before().empty()) {
      const std::string text = "begins again: there is no checkpoint";
      log_->append("resume", moment_now(), text);
      observer_.resumed(text);
    } else {
      log_->append(
          "start", moment_now(),
          fmt::format("{} steps of {} tokens{}", job_.options.steps(), job_.options.tokens_per_step(), by_ranks()));
    }
  }

  [[nodiscard]] std::string by_ranks() const {
    return ranks_.several() ? fmt::format(", on {} ranks", ranks_.size()) : "";
  }

  // Among the events, which may be another process's by now: that is an error.
  void note(std::string_view kind, const Moment& moment, std::string_view text) {
    observer_.before_writing();
    log_->append(kind, moment, text);
  }

  // The first line of the text. The error that ends a training is the one to report: a folder that was moved away
  // refuses this note, too.
  void log_end(const char* phase, std::string_view text) noexcept {
    try {
      note("end", moment_now(), text.substr(0, text.find('\n')));
      progress_->enter(phase);
    } catch (const std::exception&) {
    }
  }

  void train_to_the_end() {
    observer_.progress(trainer_.steps_done(), missing);
    if (trainer_.steps_done() == 0 && state_.rows.empty()) probe();  // not again after a checkpoint of step 0
    while (trainer_.steps_done() < job_.options.steps()) {
      step();
      if (job_.options.probes_at(trainer_.steps_done())) probe();
      observer_.progress(trainer_.steps_done(), last_loss_);
      if (trainer_.stop_requested()) stop();
      if (trainer_.steps_done() % job_.options.checkpoint_every == 0)
        save();
      else if (tables_ && tables_->flush_is_due())
        flush();
    }
    save();
  }

  void step() {
    const double exchanged_before = ranks_.exchange_seconds();
    record([&] { return trainer_.step(ranks_.first() && track_is_due() ? &chosen_ : nullptr); });
    exchange_seconds_ += ranks_.exchange_seconds() - exchanged_before;
  }

  // Waits for updates that are under way.
  void settle() {
    record([&] { return trainer_.wait(); });
  }

  template <class Next>
  void record(const Next& next) {
    if (const std::optional<StepRecord> done = next(); done && ranks_.first()) add(*done);
  }

  // Rows of an update are written when it is done: on a GPU the next one is under way by then.
  void add(const StepRecord& update) {
    const double seconds = seconds_since(std::max(update.start, recorded_));
    recorded_ = Clock::now();
    const auto tokens = static_cast<double>(job_.options.tokens_per_step());
    tables_->add_step({update.after, update.loss, job_.options.optim.muon_lr * update.lr_factor,
                       job_.options.optim.adamw_lr * update.lr_factor, update.grad_norm, tokens / seconds});
    if (update.measurer) {
      const HeadMeasurements heads = update.measurer->finish();
      const Measured measured{update.before, "train"};
      tables_->add_heads(measured, heads.layers);
      tables_->add_gains(measured, heads.gains, /*with_vectors=*/!job_.options.probes_at(update.before.step));
    }
    if (const auto spike = spikes_.add(update.after.step, update.loss))
      note("spike", update.after,
           fmt::format("loss {:.4f}; the median of the {} before is {:.4f}", update.loss, LossSpikes::window,
                       spike->median));
    progress_->add(update.after, update.loss, tokens, seconds);
    for (const std::string& text : slow_ranks_.add(update.seconds)) {
      note("warning", update.after, text);
      observer_.warning(text);
    }
    last_loss_ = update.loss;
    state_.loss_sum += update.loss;
    ++state_.loss_count;
    seconds_ += seconds;
    tokens_ += tokens;
  }

  [[nodiscard]] bool track_is_due() const {
    return job_.track.every > 0 && trainer_.steps_done() % job_.track.every == 0;
  }

  [[nodiscard]] bool needs_rank_errors() const { return job_.with_rank_errors && chosen_.has(MetricGroup::other_rank); }

  // The first probe has no losses: nothing was trained.
  void probe() {
    settle();
    const bool with_loss = trainer_.steps_done() > 0;
    if (!ranks_.first()) {
      static_cast<void>(trainer_.probe(chosen_, with_loss));
      return;
    }
    progress_->enter(phase::probe);
    const double loss = with_loss ? state_.loss_sum / static_cast<double>(state_.loss_count) : missing;
    const Measured now{moment_now(), "probe"};
    const bool is_last = trainer_.steps_done() == job_.options.steps();
    const ProbeResult result = trainer_.probe(chosen_, with_loss, /*with_errors=*/is_last && needs_rank_errors());
    if (is_last) rank_errors_ = result.rank_errors;
    tables_->add_probe({now.moment, loss, result.val_loss.value_or(missing)}, result.layers);
    tables_->add_heads(now, result.layers);
    tables_->add_gains(now, result.gains, /*with_vectors=*/true);
    state_.loss_sum = 0;
    state_.loss_count = 0;
    note("probe", now.moment,
         result.val_loss ? fmt::format("validation loss {:.4f}", *result.val_loss) : "heads before training");
    progress_->enter(phase::training);
  }

  void flush() {
    observer_.before_writing();
    state_.rows = tables_->flush();
  }

  void save() {
    settle();
    state_.step = trainer_.steps_done();
    if (!ranks_.first()) {
      save_checkpoint(checkpoints_, trainer_, state_, job_.options.keep_checkpoints);
      return;
    }
    progress_->enter(phase::checkpoint);
    flush();
    save_checkpoint(checkpoints_, trainer_, state_, job_.options.keep_checkpoints, observer_.before_writing);
    if (last_saved_ != state_.step)  // the last step may be saved twice
      note("checkpoint", moment_now(), fmt::format("{}/{}", checkpoints_name, checkpoint_name(state_.step)));
    last_saved_ = state_.step;
    progress_->enter(phase::training);
  }

  [[noreturn]] void stop() {
    observer_.saving();
    save();
    throw AgreedError(Fault::interrupted, fmt::format("interrupted at step {} of {}, state saved; {}",
                                                      trainer_.steps_done(), job_.options.steps(), job_.resume_hint));
  }

  const TrainJob& job_;
  const Ranks& ranks_;
  const TrainObserver& observer_;
  MetricSelection chosen_;
  std::filesystem::path checkpoints_;
  std::optional<std::filesystem::path> latest_;
  Trainer trainer_;
  std::optional<RunTables> tables_;  // of the first rank
  CheckpointState state_;
  Clock::time_point recorded_ = Clock::now();
  double last_loss_ = missing, seconds_ = 0, exchange_seconds_ = 0, tokens_ = 0;
  std::optional<RankErrors> rank_errors_;  // of the last probe
  std::optional<EventLog> log_;
  std::optional<ProgressFile> progress_;
  std::optional<std::int64_t> last_saved_;  // the step of the last checkpoint that is among the events
  LossSpikes spikes_;
  SlowRanks slow_ranks_;
};

// Torch says how much was asked for in the middle of a sentence.
std::string out_of_memory(const TrainJob& job, const ComputeDevice& device, const std::string& said) {
  static const std::regex asked("Tried to allocate ([0-9.]+ .iB)");
  std::smatch found;
  const std::string more = std::regex_search(said, found, asked) ? found[1].str() : "more";
  const bool has_recompute = !job.options.recompute && has_device_updates(job.model, job.options, device.device);
  return fmt::format(
      "{}: out of memory on {}: {} were needed beside {:.1f} GiB that the run holds, of {:.1f} GiB; a smaller "
      "train.batch with a larger train.accumulation{} needs less; checkpoints are as they were",
      job.label, device.description, more, reserved_memory_mb(device) / 1024, device_memory_mb(device) / 1024,
      has_recompute ? ", or train.recompute=true," : "");
}

}  // namespace

TrainResult train(const TrainJob& job, const Corpus& corpus, const ComputeDevice& device,
                  const TrainObserver& observer) {
  try {
    return TrainRun(job, corpus, device, observer).run();
  } catch (const c10::OutOfMemoryError& error) {
    throw Error(Fault::runtime, out_of_memory(job, device, error.what_without_backtrace()));
  } catch (const c10::Error& error) {
    const auto bytes = bytes_that_did_not_fit(error);
    if (!bytes) throw;
    fail_runtime(
        "{}: out of memory on {}: {} were needed at once; a smaller train.batch with a larger train.accumulation needs "
        "less; checkpoints are as they were",
        job.label, device.description, more_memory_text(*bytes));
  }
}

}  // namespace headscope
