// What the figures of a study show: means over seeds.
#include <algorithm>
#include <cmath>
#include <functional>

#include "core/text.h"
#include "study/study_figures.h"

namespace headscope {
namespace {

using Runs = std::vector<const ConditionResults*>;

// The mean over runs at `tokens`, of the values that are finite. series_of(run) is a list with one value for each
// probe.
template <class SeriesOf>
MeanInterval mean_at(const Runs& runs, std::int64_t tokens, SeriesOf series_of) {
  std::vector<double> values;
  for (const ConditionResults* run : runs)
    if (const auto probe = probe_at(*run, tokens)) values.push_back(series_of(*run)[*probe]);
  return finite_mean(std::move(values));
}

void append(SeedMeans& means, const MeanInterval& interval) {
  means.mean.push_back(interval.mean);
  means.low.push_back(interval.low);
  means.high.push_back(interval.high);
}

template <class SeriesOf>
SeedMeans curve_of(const Runs& runs, const Integers& tokens, SeriesOf series_of) {
  SeedMeans means;
  for (const std::int64_t at : tokens) append(means, mean_at(runs, at, series_of));
  return means;
}

std::vector<SeedMeans> gamma_curves(Runs runs, const Integers& tokens) {
  std::erase_if(runs, [](const ConditionResults* run) { return run->gamma_cv.empty(); });
  std::vector<SeedMeans> curves;
  for (std::size_t layer = 0; !runs.empty() && layer < runs.front()->gamma_cv.size(); ++layer)
    curves.push_back(curve_of(runs, tokens, [&](const auto& run) -> const Numbers& { return run.gamma_cv[layer]; }));
  return curves;
}

SeedMeans score_std_curve(Runs runs, const Integers& tokens) {
  const std::string name(score_std_name);
  std::erase_if(runs, [&](const ConditionResults* run) { return !run->measures.contains(name); });
  if (runs.empty()) return {};
  return curve_of(runs, tokens, [&](const auto& run) -> const Numbers& { return run.measures.at(name).mean; });
}

// Runs that diverged end the curves of their condition early, unless all did.
StudyCurves curves_of(const Condition& condition, Runs runs, std::int64_t final_tokens) {
  if (!std::ranges::all_of(runs, [](const auto* run) { return has_diverged(*run); }))
    std::erase_if(runs, [](const ConditionResults* run) { return has_diverged(*run); });
  StudyCurves curves;
  curves.tag = condition.tag;
  curves.letter = condition.letter;
  curves.name = condition.name;
  curves.seeds = runs.size();
  curves.tokens = common_tokens(runs);
  curves.loss = curve_of(runs, curves.tokens, std::mem_fn(&ConditionResults::loss));
  curves.val_loss = curve_of(runs, curves.tokens, std::mem_fn(&ConditionResults::val_loss));
  curves.mean_pr = curve_of(runs, curves.tokens, std::mem_fn(&ConditionResults::mean_pr));
  curves.score_std = score_std_curve(runs, curves.tokens);
  for (std::size_t layer = 0; layer < runs.front()->layer_pr.size(); ++layer)
    append(curves.layer_pr,
           mean_at(runs, final_tokens, [&](const auto& run) -> const Numbers& { return run.layer_pr[layer]; }));
  curves.gamma_cv = gamma_curves(runs, curves.tokens);
  return curves;
}

std::vector<std::string> notes_of(const StudyResult& result) {
  const Reading& last = result.over_time.back();
  std::vector<std::string> notes = {
      fmt::format("conclusion: {}, since {}", conclusion_name(result.verdict.conclusion),
                  tokens_text(result.held_since)),
      result.verdict.descriptive ? "one seed describes, it does not test" : "only the last probe is the test"};
  if (const auto product = last.updates_x_adamw_lr())
    notes.push_back(
        fmt::format("end: {} updates, updates × adamw_lr = {:g}", with_separators(*last.updates), *product));
  return notes;
}

}  // namespace

StudyFigureData figure_data(const Study& study, const StudyResult& result) {
  StudyFigureData data;
  data.title = study.title;
  data.tau = result.verdict.tau;
  data.notes = notes_of(result);
  for (std::size_t i = 0; i < result.verdict.conditions.size(); ++i) {
    const Condition& condition = result.verdict.conditions[i].condition;
    const Runs runs = runs_of(study, condition.tag);
    if (runs.empty()) continue;
    data.conditions.push_back(curves_of(condition, runs, result.tokens));
    data.conditions.back().colour = i;
  }
  for (std::size_t i = 0; i < result.details.size(); ++i) {
    const Contrast& contrast = result.verdict.effects[i].contrast;
    const EffectDetails& details = result.details[i];
    EffectCurves curves{
        contrast.name,      pair_text(result.verdict, contrast), {}, {}, details.mean_size(), details.noise_size(),
        contrast.is_control};
    for (const Reading& reading : result.over_time)
      append(curves.over_time, reading.verdict.effects[i].test.difference);
    for (const MeanInterval& layer : details.layers) append(curves.layers, layer);
    data.effects.push_back(std::move(curves));
  }
  for (const Reading& reading : result.over_time) data.tokens.push_back(reading.tokens);
  return data;
}

}  // namespace headscope
