#include "experiments/study_run.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "core/atomic_file.h"
#include "core/interrupt.h"
#include "core/missing.h"
#include "core/plain_error.h"
#include "experiments/condition_results.h"
#include "experiments/training_run.h"
#include "heads/baseline.h"
#include "heads/training_log.h"
#include "launch/place.h"
#include "ops/torch_errors.h"
#include "study/study_figures.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

// "A QK seed 42"
std::string label_of(const StudyJob& job, std::uint64_t seed, const Condition& condition) {
  const std::string label = fmt::format("{} {}", condition.letter, condition.tag);
  return seeds_of(job.options).size() > 1 ? fmt::format("{} seed {}", label, seed) : label;
}

TrainJob train_job(const StudyJob& job, std::uint64_t seed, const Condition& condition, const fs::path& place) {
  TrainJob train;
  train.folder = place;
  train.label = label_of(job, seed, condition);
  train.resume_hint = resume_hint(study_command, job.folder.out);
  const Setup setup = setup_of(job.options, condition);
  train.model = setup.model;
  train.options = setup.train;
  train.diverges_to_result = true;
  train.with_rank_errors = true;
  train.keep_moments = std::numeric_limits<std::size_t>::max();  // results.json has every probe
  train.track = job.options.track;
  train.seed = seed;
  train.config = to_json(job.options);
  train.config.update(to_json(setup), /*merge_objects=*/true);
  train.config["condition"] = {{"tag", condition.tag}, {"seed", seed}};
  return train;
}

// The results of an earlier start of this run.
ConditionResults results_before(const fs::path& file, const Condition& condition, std::int64_t n_layers) {
  ConditionResults results = read_results(file, condition.tag);
  if (static_cast<std::int64_t>(results.layer_pr.size()) != n_layers)
    fail_input("{}: has {} layers; the model of this study has {}", file.string(), results.layer_pr.size(), n_layers);
  return results;
}

// One training of the study: a condition of a seed.
struct StudyRun {
  std::uint64_t seed;
  Condition condition;
  fs::path seed_place;  // "seed_42"; empty where there is one seed

  [[nodiscard]] fs::path place() const { return seed_place / condition.tag; }
  [[nodiscard]] std::string name() const { return place().string(); }
};

std::vector<StudyRun> runs_of(const StudyOptions& options) {
  std::vector<StudyRun> runs;
  const auto seeds = seeds_of(options);
  for (const std::uint64_t seed : seeds)
    for (const Condition& condition : conditions_of(options))
      runs.push_back({seed, condition, seeds.size() == 1 ? "" : fmt::format("seed_{}", seed)});
  return runs;
}

// Trains runs of the study while there are any that no other process has. Others may train beside it, in this machine
// and elsewhere.
class StudyTraining {
 public:
  StudyTraining(const StudyJob& job, TrainingRun& run, RunBoard& board)
      : job_(job), run_(run), board_(board), runs_(runs_of(job.options)) {}

  // Returns when all runs have results. Throws Error(Fault::runtime) when some failed, and all others have them.
  void train_all() {
    constexpr int rounds_per_age =
        10;  // to look at ages writes a file, and claims of other machines take minutes to lapse
    for (int round = 0;; ++round) {
      const FailedRuns failed = board_.failed();
      switch (train_next(failed, /*by_age=*/round % rounds_per_age == 0)) {
        case Next::trained:
          round = -1;
          break;
        case Next::others_have_them:
          wait_for_others(failed);
          break;
        case Next::none_is_left:
          if (!failed.empty()) throw RunsFailed(failed, runs_.size(), resume_hint(study_command, run_.folder.path()));
          return;
      }
    }
  }

  // All results, in order of the seeds.
  [[nodiscard]] Study results() {
    std::map<std::uint64_t, SeedRuns> by_seed;
    for (const StudyRun& one : runs_) {
      by_seed[one.seed].name = absolute_folder(run_.folder.path() / one.seed_place).filename().string();
      const auto found = trained_.find(one.name());
      by_seed[one.seed].runs[one.condition.tag] =
          found != trained_.end() ? found->second
                                  : results_before(results_file(one), one.condition, job_.options.model.layers);
    }
    Study study;
    for (auto& [seed, runs] : by_seed) study.seeds.push_back(std::move(runs));
    return study;
  }

  [[nodiscard]] double tokens_per_s() const { return tokens_per_s_; }

  // Of a study that goes on: "3 of 6 runs are done; process 17 on node3 trains A QK seed 43".
  void say_what_is_done() const {
    const auto done = std::ranges::count_if(runs_, [&](const StudyRun& one) { return has_results(one); });
    std::string others;
    for (const StudyRun& one : runs_) {
      const fs::path claim = run_.folder.path() / one.place() / claim_name;
      if (const auto owner = owner_of(claim); owner && !has_results(one) && is_claimed(claim))
        others += fmt::format("; {} trains {}", owner_text(*owner), label_of(job_, one.seed, one.condition));
    }
    if (done > 0 || !others.empty())
      run_.console.info(fmt::format("{} of {} runs {} done{}", done, runs_.size(), done == 1 ? "is" : "are", others));
  }

 private:
  enum class Next { trained, others_have_them, none_is_left };

  [[nodiscard]] fs::path results_file(const StudyRun& one) const {
    return run_.folder.path() / one.place() / results_name;
  }

  [[nodiscard]] bool has_results(const StudyRun& one) const {
    std::error_code error;
    return fs::exists(results_file(one), error);
  }

  // The first run that is free, in their order.
  Next train_next(const FailedRuns& failed, bool by_age) {
    Next next = Next::none_is_left;
    for (const StudyRun& one : runs_) {
      if (has_results(one) || failed.contains(one.name())) continue;
      const TrainJob train = train_job(job_, one.seed, one.condition, run_.folder.path() / one.place());
      try {
        if (claim_and_train(one, train, by_age)) return Next::trained;
        next = Next::others_have_them;
      } catch (const ClaimLost& lost) {
        board_.end();
        run_.console.warn(fmt::format("{}: {}; this process was silent for too long, or the file was removed",
                                      train.label, lost.what()));
        return Next::trained;
      } catch (const Error& error) {
        board_.end();
        if (error.fault() == Fault::interrupted) throw;
        static_cast<void>(run_.folder.place());  // where the study was moved away, nothing goes on
        note_failure(one, train, error);
        return Next::trained;
      } catch (const std::exception& error) {  // of a library: no memory, a folder that is gone
        board_.end();
        note_failure(one, train, Error(Fault::runtime, plain_error(error).what()));
        return Next::trained;
      }
    }
    return next;
  }

  void note_failure(const StudyRun& one, const TrainJob& train, const Error& error) {
    if (board_.fail(one.name(), train.label, error)) return;
    run_.folder.leave_to_others();
    throw error;
  }

  // False where another process has it.
  bool claim_and_train(const StudyRun& one, const TrainJob& train, bool by_age) {
    const fs::path place = run_.folder.place_of(one.place());
    make_folder(place);
    std::optional<Claim> claim = Claim::take(place / claim_name, {}, by_age);
    if (!claim) return false;
    if (has_results(one)) return true;  // it was finished just now
    run_.folder.remove_leftovers(one.place());
    run_.folder.note_running();
    board_.take(one.name(), train.label);
    try {
      with_short_torch_errors([&] { train_claimed(one, train, *claim); });
    } catch (const std::exception&) {
      claim->check();  // what failed because another process trains there by now is no failure of the run
      throw;
    }
    board_.end();
    return true;
  }

  void train_claimed(const StudyRun& one, const TrainJob& train, Claim& claim) {
    const TrainResult result = headscope::train(train, run_.corpus, run_.device, observer(one, train, claim));
    tokens_per_s_ = result.tokens_per_s;
    ConditionResults results = results_of(result, train, one.condition.tag, baselines_);
    if (result.divergence) {
      run_.console.warn(
          fmt::format("{}: {}; the run diverged, the study goes on", train.label, result.divergence->found));
      add_divergence(results, result.divergence->moment);
    }
    claim.check();
    if (!result.divergence) set_phase(run_.folder.place() / one.place(), phase::done);
    claim.check();
    write_results(results, run_.folder, one.seed_place);  // from here on the run is done
    trained_[one.name()] = std::move(results);
  }

  TrainObserver observer(const StudyRun& one, const TrainJob& train, Claim& claim) {
    TrainObserver observer;
    observer.progress = [&, begun = false](std::int64_t done, double loss) mutable {
      if (!begun)
        board_.begin(train.options.steps(), done);
      else
        board_.step(done, std::isnan(loss) ? std::string() : fmt::format("loss {:.3f}", loss));
      begun = true;
    };
    observer.saving = [&] { board_.saving(); };
    observer.before_writing = [&] {
      static_cast<void>(run_.folder.place_of(one.place()));
      claim.check();
    };
    return observer;
  }

  // Says once whom it waits for.
  void wait_for_others(const FailedRuns& failed) {
    for (const StudyRun& one : runs_) {
      if (has_results(one) || failed.contains(one.name())) continue;
      const std::optional<ClaimOwner> owner = owner_of(run_.folder.path() / one.place() / claim_name);
      if (owner && said_.insert(owner->token).second) board_.waits_for(label_of(job_, one.seed, one.condition), *owner);
    }
    wait();
  }

  // Until another process may have finished, or died.
  void wait() const {
    constexpr int pieces = 40;  // of two seconds
    for (int i = 0; i < pieces; ++i) {
      if (interrupt_requested())
        throw Error(Fault::interrupted, fmt::format("interrupted; other processes go on with the study; {}",
                                                    resume_hint(study_command, run_.folder.path())));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  const StudyJob& job_;
  TrainingRun& run_;
  RunBoard& board_;
  std::vector<StudyRun> runs_;
  Baselines baselines_;
  std::map<std::string, ConditionResults> trained_;  // by this process
  std::set<std::string> said_;                       // claims that were told of
  double tokens_per_s_ = 0;
};

// Verdict and figures, by the first process that finds all runs done; the others read what it wrote.
StudyOutcome conclude_held(const StudyJob& job, TrainingRun& run, StudyTraining& training) {
  RunFolder& folder = run.folder;
  static_cast<void>(folder.place());  // another study may have its name by now
  StudyOutcome outcome;
  outcome.concluded = !is_complete(folder.path());
  outcome.device = run.device.description;
  outcome.unigram_entropy = run.corpus.unigram_entropy;
  outcome.true_entropy = run.corpus.true_entropy;
  outcome.out = folder.path();
  outcome.tokens_per_s = training.tokens_per_s();
  Study study = outcome.concluded ? training.results() : load_study({folder.path()});
  study.title = run_title(folder.path(), job.options.preset);
  study.own = own_conditions_of(job.options);
  outcome.result = analyze(study, job.options.tau);
  for (const std::string& warning : outcome.result.warnings) run.console.warn(warning);
  const std::vector<Figure> figures = study_figures(figure_data(study, outcome.result));
  const fs::path place = folder.place();
  if (outcome.concluded || !are_drawn(figures, place))
    draw_or_warn(
        folder.path(), resume_hint(study_command, folder.path()), run.console,
        [&] { draw(figures, place, theme_named(job.theme)); }, [&] { return folder.is_ours(); });
  if (!outcome.concluded) return outcome;
  outcome.seconds = seconds_since(run.start);
  write_combined(study, outcome.result, outcome.seconds, folder);
  folder.finish(RunStatus::complete, {{"verdict", to_json(outcome.result.verdict)},
                                      {"seconds", outcome.seconds},
                                      {"tokens_per_s", outcome.tokens_per_s},
                                      {"inputs_xxh3_128", {{run.corpus.source, run.corpus.hash}}}});
  return outcome;
}

StudyOutcome conclude(const StudyJob& job, TrainingRun& run, StudyTraining& training) {
  run.folder.hold();
  try {
    return conclude_held(job, run, training);
  } catch (const std::exception&) {
    if (run.folder.is_ours()) throw;
    run.folder.hold();  // while this process was silent, another one concluded it, or does
    return conclude_held(job, run, training);
  }
}

}  // namespace

StudyOutcome run_study(const StudyJob& given, Console& console, RunBoard& board) {
  const InterruptGuard guard;
  validate(given.options);
  StudyJob job = given;
  if (job.folder.join && job.worker_device.empty())
    take_device(job, own_device(job.options.device, place_among_tasks().local_rank));
  TrainingRun run = begin_training(job, study_command, {{"definitions", study_definitions()}}, seeds_of(job.options),
                                   /*shared=*/true, console);
  return run.folder.live([&] {
    board.opened();
    StudyTraining training(job, run, board);
    if (!run.folder.already_complete()) {
      training.say_what_is_done();
      training.train_all();
    }
    const StudyOutcome outcome = with_short_torch_errors([&] { return conclude(job, run, training); });
    if (outcome.concluded) board.concluded();
    return outcome;
  });
}

std::vector<int> gpus_for_workers(const std::vector<int>& wanted) {
  std::vector<int> gpus = wanted;
  if (gpus.empty()) {
    gpus.resize(static_cast<std::size_t>(std::max(1, count_gpus())));  // the first one says why there is none
    std::iota(gpus.begin(), gpus.end(), 0);
  }
  for (const int gpu : gpus) check_gpu(gpu, fmt::format("--devices {}", gpu));
  return gpus;
}

}  // namespace headscope
