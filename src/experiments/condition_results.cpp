#include "experiments/condition_results.h"

#include <algorithm>

#include "core/missing.h"
#include "stats/sample_moments.h"

namespace headscope {
namespace {

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

}  // namespace

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

}  // namespace headscope
