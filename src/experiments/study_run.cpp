#include "experiments/study_run.h"

#include <algorithm>
#include <limits>
#include <map>

#include "core/interrupt.h"
#include "core/missing.h"
#include "experiments/training_run.h"
#include "heads/baseline.h"
#include "heads/training_log.h"
#include "ops/torch_errors.h"
#include "stats/sample_moments.h"
#include "study/study_figures.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

// A last probe without values: where the run diverged.
void add_divergence(ConditionResults& results, const Moment& moment) {
  results.tokens.push_back(moment.tokens);
  results.updates->push_back(moment.step);
  for (Numbers* series : {&results.loss, &results.val_loss, &results.mean_pr}) series->push_back(missing);
  for (Numbers& layer : results.layer_pr) layer.push_back(missing);
  for (Numbers& layer : results.gamma_cv) layer.push_back(missing);
  for (auto& [name, series] : results.measures) {
    series.mean.push_back(missing);
    for (Numbers& layer : series.layers) layer.push_back(missing);
  }
}

// The mean over the lists of layers, for each probe.
Numbers mean_over(const std::vector<Numbers>& layers) {
  Numbers means;
  for (std::size_t probe = 0; probe < layers.front().size(); ++probe) {
    double sum = 0;
    for (const Numbers& layer : layers) sum += layer[probe];
    means.push_back(sum / static_cast<double>(layers.size()));
  }
  return means;
}

// The name in results.json of a metric of the tables.
std::string measure_named(const std::string& metric) {
  return metric == "k_pr" ? std::string(main_measure) : metric;
}

// The series beside mean_pr, what Gaussian vectors give of each rank, and the errors of ranks.
void add_measures(ConditionResults& results, const TrainResult& trained, const TrainJob& job, Baselines& baselines) {
  const Tracks& probes = trained.tracks.probe;
  const BatchShape shape{job.options.seq_len, job.model.d_k, job.options.batch * job.options.seq_len};
  const auto add_gaussian = [&](std::string_view metric) {
    if (const auto null = baselines.of(metric, shape))
      results.gaussian[measure_named(std::string(metric))] = null->value;
  };
  for (const FurtherSeries& one : further_series) {
    const std::string_view name = one.name;
    if (!probes.has(name)) continue;
    MeasureSeries& series = results.measures[std::string(name)];
    for (std::int64_t layer = 0; layer < probes.counts.layers; ++layer)
      series.layers.push_back(probes.of_layer(name, layer));
    series.mean = mean_over(series.layers);
    add_gaussian(name);
  }
  if (results.measures.empty()) return;
  add_gaussian("k_pr");
  if (!trained.rank_errors) return;
  for (const auto& [metric, error] : trained.rank_errors->mean) results.jackknife_error[measure_named(metric)] = error;
  for (const auto& [metric, errors] : trained.rank_errors->layers)
    results.layer_jackknife_error[measure_named(metric)] = errors;
}

// What training measured, as the results of a condition.
ConditionResults results_of(const TrainResult& trained, const TrainJob& job, const std::string& tag,
                            Baselines& baselines) {
  const Tracks& probes = trained.tracks.probe;
  ConditionResults results;
  results.tag = tag;
  results.updates.emplace();
  const ScheduleOptions& schedule = job.options.schedule;
  if (schedule.kind == Schedule::constant && schedule.warmup_steps == 0) results.adamw_lr = job.options.optim.adamw_lr;
  for (const ProbeLosses& losses : trained.losses) {
    results.tokens.push_back(losses.moment.tokens);
    results.updates->push_back(losses.moment.step);
    results.loss.push_back(losses.train);
    results.val_loss.push_back(losses.validation);
  }
  for (std::int64_t layer = 0; layer < probes.counts.layers; ++layer)
    results.layer_pr.push_back(probes.of_layer("k_pr", layer));
  results.mean_pr = mean_over(results.layer_pr);
  add_measures(results, trained, job, baselines);
  if (trained.tracks.gains.empty()) return results;
  results.gamma_cv.resize(results.layer_pr.size());
  std::vector<Numbers> last(results.layer_pr.size());
  for (const LayerGains& gains : trained.tracks.gains) {
    const auto layer = static_cast<std::size_t>(gains.layer);
    last[layer] = gains.k;
    if (std::ranges::find(probes.moments, gains.moment) != probes.moments.end())
      results.gamma_cv[layer].push_back(coefficient_of_variation(gains.k));
  }
  if (job.options.qk_gain == QkGain::learned) results.gamma_final = std::move(last);
  return results;
}

TrainJob train_job(const StudyJob& job, std::uint64_t seed, const Condition& condition, const fs::path& place) {
  TrainJob train;
  train.folder = place;
  train.label = fmt::format("{} {}", condition.letter, condition.tag);
  if (seeds_of(job.options).size() > 1) train.label += fmt::format(" seed {}", seed);
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

// Trains the conditions that have no results yet. Returns all of them, in order of the seeds.
Study train_study(const StudyJob& job, const TrainingRun& run, double& tokens_per_s) {
  const auto seeds = seeds_of(job.options);
  const RunFolder& folder = run.folder;
  std::map<std::uint64_t, SeedRuns> by_seed;
  Baselines baselines;
  for (const std::uint64_t seed : seeds)
    for (const Condition& condition : conditions_of(job.options)) {
      const fs::path seed_place = seeds.size() == 1 ? "" : fmt::format("seed_{}", seed);
      const fs::path place = folder.path() / seed_place / condition.tag;
      by_seed[seed].name = absolute_folder(folder.path() / seed_place).filename().string();
      ConditionResults& results = by_seed[seed].runs[condition.tag];
      if (fs::exists(place / results_name)) {
        results = results_before(place / results_name, condition, job.options.model.layers);
        continue;
      }
      fs::create_directories(folder.place() / seed_place / condition.tag);
      const TrainJob one = train_job(job, seed, condition, place);
      const TrainResult trained = train_in(run, one);
      tokens_per_s = trained.tokens_per_s;
      results = results_of(trained, one, condition.tag, baselines);
      if (trained.divergence) {
        run.console.warn(
            fmt::format("{}: {}; the run diverged, the study goes on", one.label, trained.divergence->found));
        add_divergence(results, trained.divergence->moment);
      }
      write_results(results, folder, seed_place);
      if (!trained.divergence) set_phase(folder.place() / seed_place / condition.tag, phase::done);
    }
  Study study;
  for (auto& [seed, runs] : by_seed) study.seeds.push_back(std::move(runs));
  return study;
}

StudyOutcome run_in_folder(const StudyJob& job, TrainingRun& run) {
  RunFolder& folder = run.folder;
  StudyOutcome outcome;
  outcome.device = run.device.description;
  outcome.unigram_entropy = run.corpus.unigram_entropy;
  outcome.true_entropy = run.corpus.true_entropy;
  outcome.out = folder.path();
  Study study = folder.already_complete() ? load_study({folder.path()}) : train_study(job, run, outcome.tokens_per_s);
  study.title = run_title(folder.path(), job.options.preset);
  study.own = own_conditions_of(job.options);
  outcome.result = analyze(study, job.options.tau);
  for (const std::string& warning : outcome.result.warnings) run.console.warn(warning);
  const std::vector<Figure> figures = study_figures(figure_data(study, outcome.result));
  if (!folder.already_complete() || !are_drawn(figures, folder.path()))
    draw_or_warn(folder.path(), resume_hint(study_command, folder.path()), run.console,
                 [&] { draw(figures, folder.place(), theme_named(job.theme)); });
  if (folder.already_complete()) return outcome;
  outcome.seconds = seconds_since(run.start);
  write_combined(study, outcome.result, outcome.seconds, folder);
  folder.finish(RunStatus::complete, {{"verdict", to_json(outcome.result.verdict)},
                                      {"seconds", outcome.seconds},
                                      {"tokens_per_s", outcome.tokens_per_s},
                                      {"inputs_xxh3_128", {{run.corpus.source, run.corpus.hash}}}});
  return outcome;
}

}  // namespace

StudyOutcome run_study(const StudyJob& given, Console& console) {
  const InterruptGuard guard;
  validate(given.options);
  StudyJob job = given;
  TrainingRun run =
      begin_training(job, study_command, {{"definitions", study_definitions()}}, seeds_of(job.options), console);
  return run.folder.live([&] { return with_short_torch_errors([&] { return run_in_folder(job, run); }); });
}

}  // namespace headscope
