#include "study/summary.h"

#include <cmath>
#include <limits>

#include "stats/welch.h"

namespace headscope {
namespace {

using Runs = std::vector<const ConditionResults*>;
using Values = std::vector<double>;

Runs runs_of(const Study& study, std::size_t condition) {
  Runs runs;
  for (const SeedRuns& seed : study.seeds)
    if (seed.conditions[condition]) runs.push_back(&*seed.conditions[condition]);
  return runs;
}

// Probes that all runs have.
Integers common_tokens(const Runs& runs) {
  Integers tokens = runs.front()->tokens;
  std::erase_if(tokens, [&](std::int64_t at) {
    return !std::all_of(runs.begin(), runs.end(), [&](const auto* run) { return probe_at(*run, at).has_value(); });
  });
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

// One value from each run, those that are finite.
template <class Pick>
Values over_runs(const Runs& runs, std::int64_t tokens, Pick pick) {
  Values values;
  for (const ConditionResults* run : runs) {
    const double value = pick(*run, *probe_at(*run, tokens));
    if (std::isfinite(value)) values.push_back(value);
  }
  return values;
}

void append(SeedMeans& means, double mean, double low, double high) {
  means.mean.push_back(mean);
  means.low.push_back(low);
  means.high.push_back(high);
}

SeedMeans curve_of(const Runs& runs, const Integers& tokens, Numbers ConditionResults::*series) {
  SeedMeans means;
  for (const std::int64_t at : tokens) {
    const auto interval =
        mean_interval(over_runs(runs, at, [&](const auto& run, std::size_t probe) { return (run.*series)[probe]; }));
    append(means, interval.mean, interval.low, interval.high);
  }
  return means;
}

Values layer_values(const Runs& runs, std::int64_t tokens, std::size_t layer) {
  return over_runs(runs, tokens, [&](const auto& run, std::size_t probe) { return run.layer_pr[layer][probe]; });
}

std::vector<Numbers> gamma_curves(const Runs& runs, const Integers& tokens) {
  Runs with_gamma = runs;
  std::erase_if(with_gamma, [](const ConditionResults* run) { return run->gamma_cv.empty(); });
  std::vector<Numbers> curves;
  if (with_gamma.empty()) return curves;
  for (std::size_t layer = 0; layer < with_gamma.front()->gamma_cv.size(); ++layer) {
    Numbers curve;
    for (const std::int64_t at : tokens)
      curve.push_back(mean_interval(over_runs(with_gamma, at, [&](const auto& run, std::size_t probe) {
                        return run.gamma_cv[layer][probe];
                      })).mean);
    curves.push_back(std::move(curve));
  }
  return curves;
}

StudyCurves curves_of(const Runs& runs, std::int64_t final_tokens) {
  StudyCurves curves;
  curves.tokens = common_tokens(runs);
  curves.loss = curve_of(runs, curves.tokens, &ConditionResults::loss);
  curves.val_loss = curve_of(runs, curves.tokens, &ConditionResults::val_loss);
  curves.mean_pr = curve_of(runs, curves.tokens, &ConditionResults::mean_pr);
  for (std::size_t layer = 0; layer < runs.front()->layer_pr.size(); ++layer) {
    const auto interval = mean_interval(layer_values(runs, final_tokens, layer));
    append(curves.layer_pr, interval.mean, interval.low, interval.high);
  }
  curves.gamma_cv = gamma_curves(runs, curves.tokens);
  return curves;
}

SeedMeans layer_effects(const Runs& first, const Runs& second, std::int64_t tokens) {
  SeedMeans means;
  if (first.empty() || second.empty()) return means;
  for (std::size_t layer = 0; layer < first.front()->layer_pr.size(); ++layer) {
    const WelchTest test = welch_test(layer_values(first, tokens, layer), layer_values(second, tokens, layer));
    append(means, test.difference, test.low, test.high);
  }
  return means;
}

}  // namespace

std::array<std::vector<double>, n_conditions> mean_pr_at(const Study& study, std::int64_t tokens) {
  std::array<std::vector<double>, n_conditions> values;
  for (std::size_t i = 0; i < n_conditions; ++i)
    for (const ConditionResults* run : runs_of(study, i)) values[i].push_back(run->mean_pr[*probe_at(*run, tokens)]);
  return values;
}

StudyFigureData figure_data(const Study& study, std::int64_t tokens) {
  StudyFigureData data;
  data.title = study.title;
  std::array<Runs, n_conditions> runs;
  for (std::size_t i = 0; i < n_conditions; ++i) {
    runs[i] = runs_of(study, i);
    if (!runs[i].empty()) data.conditions[i] = curves_of(runs[i], tokens);
  }
  data.gamma_effect = layer_effects(runs[0], runs[1], tokens);
  data.norm_effect = layer_effects(runs[1], runs[2], tokens);
  return data;
}

}  // namespace headscope
