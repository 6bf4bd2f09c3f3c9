#include "study/verdict.h"

#include <cmath>

namespace headscope {
namespace {

using nlohmann::ordered_json;
using Values = std::vector<double>;

std::optional<PairEffect> effect_of(const Contrast& contrast, const PerCondition<Values>& mean_pr, double tau) {
  const Values &a = mean_pr[contrast.with], &b = mean_pr[contrast.without];
  if (a.empty() || b.empty()) return std::nullopt;
  PairEffect effect;
  effect.test = welch_test(a, b);
  effect.tested = a.size() > 1 && b.size() > 1;
  effect.reaches_tau = std::fabs(effect.test.difference) >= tau;
  return effect;
}

Conclusion conclude(const Verdict& verdict) {
  if (!verdict.gamma_effect || !verdict.norm_effect || !verdict.total_effect) return Conclusion::inconclusive;
  const bool a_b = verdict.gamma_effect->differs();
  const bool b_c = verdict.norm_effect->differs();
  if (a_b && b_c) return Conclusion::both;
  if (a_b) return Conclusion::gamma;
  if (b_c) return Conclusion::normalisation;
  const bool all_within_tau =
      !verdict.gamma_effect->reaches_tau && !verdict.norm_effect->reaches_tau && !verdict.total_effect->reaches_tau;
  return all_within_tau ? Conclusion::none : Conclusion::inconclusive;
}

// NaN and infinity become null when dumped.
ordered_json test_json(const std::optional<PairEffect>& effect) {
  if (!effect) return nullptr;
  const WelchTest& test = effect->test;
  return {{"difference", test.difference},
          {"standard_error", test.standard_error},
          {"low", test.low},
          {"high", test.high},
          {"t", test.t},
          {"df", test.df},
          {"p_value", test.p_value},
          {"differs", effect->differs()}};
}

ordered_json difference_json(const std::optional<PairEffect>& effect) {
  return effect ? ordered_json(effect->test.difference) : ordered_json();
}

ordered_json interval_json(const MeanInterval& interval) {
  return {{"n", interval.n},
          {"mean", interval.mean},
          {"standard_error", interval.standard_error},
          {"low", interval.low},
          {"high", interval.high}};
}

}  // namespace

std::string_view conclusion_name(Conclusion conclusion) {
  constexpr std::string_view names[] = {"gamma", "normalisation", "both", "none", "inconclusive"};
  return names[static_cast<std::size_t>(conclusion)];
}

Verdict decide(PerCondition<Values> mean_pr, double tau) {
  Verdict verdict;
  verdict.tau = tau;
  for (std::size_t i = 0; i < n_conditions; ++i) {
    std::erase_if(mean_pr[i], [](double value) { return !std::isfinite(value); });
    verdict.mean_pr[i] = mean_interval(mean_pr[i]);
  }
  verdict.gamma_effect = effect_of(gamma_contrast, mean_pr, tau);
  verdict.norm_effect = effect_of(norm_contrast, mean_pr, tau);
  verdict.total_effect = effect_of(total_contrast, mean_pr, tau);
  if (verdict.gamma_effect) verdict.kill_criterion = !verdict.gamma_effect->reaches_tau;
  verdict.conclusion = conclude(verdict);
  verdict.sentence = verdict_sentence(verdict);
  return verdict;
}

ordered_json to_json(const Verdict& verdict) {
  ordered_json means, seeds;
  bool several = false;
  for (std::size_t i = 0; i < n_conditions; ++i) {
    const MeanInterval& interval = verdict.mean_pr[i];
    const std::string letter(study_conditions[i].letter);
    means[letter] = interval.n > 0 ? ordered_json(interval.mean) : ordered_json();
    seeds[letter] = interval_json(interval);
    several = several || interval.n > 1;
  }
  ordered_json object = {
      {"mean_pr", means},
      {"gamma_effect", difference_json(verdict.gamma_effect)},
      {"norm_effect", difference_json(verdict.norm_effect)},
      {"tau", verdict.tau},
      {"kill_criterion", verdict.kill_criterion ? ordered_json(*verdict.kill_criterion) : ordered_json()},
      {"conclusion", conclusion_name(verdict.conclusion)},
      {"sentence", verdict.sentence}};
  if (several) {
    object["seeds"] = seeds;
    object["tests"] = {{"gamma_effect", test_json(verdict.gamma_effect)},
                       {"norm_effect", test_json(verdict.norm_effect)},
                       {"total_effect", test_json(verdict.total_effect)}};
  }
  return object;
}

}  // namespace headscope
