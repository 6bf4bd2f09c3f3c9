// What the figures of a study show: means over seeds.
#include <algorithm>
#include <cmath>
#include <functional>

#include "stats/welch.h"
#include "study/study_figures.h"

namespace headscope {
namespace {

using Runs = std::vector<const ConditionResults*>;

// Probes that all runs have.
Integers common_tokens(const Runs& runs) {
  Integers tokens = runs.front()->tokens;
  std::erase_if(tokens, [&](std::int64_t at) {
    return !std::ranges::all_of(runs, [&](const auto* run) { return probe_at(*run, at).has_value(); });
  });
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

// The values of the runs at `tokens`, those that are finite. series_of(run) is a list with one value for each probe.
template <class SeriesOf>
std::vector<double> finite_values(const Runs& runs, std::int64_t tokens, SeriesOf series_of) {
  std::vector<double> values;
  for (const ConditionResults* run : runs) {
    const double value = series_of(*run)[*probe_at(*run, tokens)];
    if (std::isfinite(value)) values.push_back(value);
  }
  return values;
}

auto layer_pr(std::size_t layer) {
  return [layer](const ConditionResults& run) -> const Numbers& { return run.layer_pr[layer]; };
}

void append(SeedMeans& means, const MeanInterval& interval) {
  means.mean.push_back(interval.mean);
  means.low.push_back(interval.low);
  means.high.push_back(interval.high);
}

template <class SeriesOf>
SeedMeans curve_of(const Runs& runs, const Integers& tokens, SeriesOf series_of) {
  SeedMeans means;
  for (const std::int64_t at : tokens) append(means, mean_interval(finite_values(runs, at, series_of)));
  return means;
}

std::vector<SeedMeans> gamma_curves(Runs runs, const Integers& tokens) {
  std::erase_if(runs, [](const ConditionResults* run) { return run->gamma_cv.empty(); });
  std::vector<SeedMeans> curves;
  for (std::size_t layer = 0; !runs.empty() && layer < runs.front()->gamma_cv.size(); ++layer)
    curves.push_back(curve_of(runs, tokens, [&](const auto& run) -> const Numbers& { return run.gamma_cv[layer]; }));
  return curves;
}

StudyCurves curves_of(const Runs& runs, std::int64_t final_tokens) {
  StudyCurves curves;
  curves.tokens = common_tokens(runs);
  curves.loss = curve_of(runs, curves.tokens, std::mem_fn(&ConditionResults::loss));
  curves.val_loss = curve_of(runs, curves.tokens, std::mem_fn(&ConditionResults::val_loss));
  curves.mean_pr = curve_of(runs, curves.tokens, std::mem_fn(&ConditionResults::mean_pr));
  for (std::size_t layer = 0; layer < runs.front()->layer_pr.size(); ++layer)
    append(curves.layer_pr, mean_interval(finite_values(runs, final_tokens, layer_pr(layer))));
  curves.gamma_cv = gamma_curves(runs, curves.tokens);
  return curves;
}

SeedMeans layer_effects(const Study& study, const Contrast& contrast, std::int64_t tokens) {
  const Runs with = runs_of(study, contrast.with), without = runs_of(study, contrast.without);
  SeedMeans means;
  for (std::size_t layer = 0; !with.empty() && !without.empty() && layer < with.front()->layer_pr.size(); ++layer) {
    const WelchTest test =
        welch_test(finite_values(with, tokens, layer_pr(layer)), finite_values(without, tokens, layer_pr(layer)));
    append(means, {.mean = test.difference, .low = test.low, .high = test.high});
  }
  return means;
}

}  // namespace

StudyFigureData figure_data(const Study& study, std::int64_t tokens) {
  StudyFigureData data;
  data.title = study.title;
  data.seeds = study.seeds.size();
  for (std::size_t i = 0; i < n_conditions; ++i)
    if (const Runs runs = runs_of(study, i); !runs.empty()) data.conditions[i] = curves_of(runs, tokens);
  data.gamma_effect = layer_effects(study, gamma_contrast, tokens);
  data.norm_effect = layer_effects(study, norm_contrast, tokens);
  return data;
}

}  // namespace headscope
