#include "study/verdict.h"

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "stats/distributions.h"

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
  effect.within_tau = !effect.reaches_tau && (!effect.tested || (effect.test.low > -tau && effect.test.high < tau));
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
      verdict.gamma_effect->within_tau && verdict.norm_effect->within_tau && verdict.total_effect->within_tau;
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
          {"differs", effect->differs()},
          {"within_tau", effect->within_tau}};
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

// A mean PR: "6.15"; shorter where it is larger than any measurement.
std::string pr_text(double value) {
  return std::fabs(value) < 1e6 ? fixed_text(value, 2) : fmt::format("{:.3g}", value);
}

// A difference of mean PR, never on the other side of τ: "+0.10", "−0.996".
std::string difference_text(double value, double tau) {
  std::string text = std::fabs(value) < 1e6 ? signed_text(value, 2, {-tau, tau}) : fmt::format("{:+.3g}", value);
  if (text.starts_with('-')) text.replace(0, 1, "−");
  return text;
}

// Why an effect that is not established is not: "less than τ = 1".
std::string doubt_text(const PairEffect& effect, double tau) {
  if (effect.reaches_tau) return "not significant at 5 %";
  if (effect.within_tau) return fmt::format("less than τ = {:g}", tau);
  return fmt::format("less than τ = {:g}, but the 95 % interval, {} to {}, goes beyond", tau,
                     difference_text(effect.test.low, tau), difference_text(effect.test.high, tau));
}

// "learning γ raises the mean key PR by 6.15 (B 59.55 → A 65.70, p = 0.003)", or why that cannot be said.
std::string effect_text(const Verdict& verdict, const Contrast& contrast, const PairEffect& effect) {
  const double difference = effect.test.difference;
  const std::string found =
      effect.differs() ? fmt::format("{} the mean key PR by {}", difference > 0 ? "raises" : "lowers",
                                     pr_text(std::fabs(difference)))
                       : fmt::format("changes the mean key PR by {}, {}", difference_text(difference, verdict.tau),
                                     doubt_text(effect, verdict.tau));
  const auto value_of = [&](std::size_t condition) {
    return fmt::format("{} {}", study_conditions[condition].letter, pr_text(verdict.mean_pr[condition].mean));
  };
  return fmt::format("{} {} ({} → {}{})", contrast.cause, found, value_of(contrast.without), value_of(contrast.with),
                     effect.tested ? ", " + p_text(effect.test.p_value) : "");
}

// Why nothing can be concluded although no condition is missing.
std::string inconclusive_reason(const Verdict& verdict) {
  if (verdict.gamma_effect->reaches_tau || verdict.norm_effect->reaches_tau)
    return fmt::format("a difference of τ = {:g} or more is not significant", verdict.tau);
  if (verdict.total_effect->differs()) return "A and C differ, while neither A and B nor B and C do";
  return fmt::format("the seeds scatter too much to exclude a difference of τ = {:g}", verdict.tau);
}

std::string headline(const Verdict& verdict) {
  switch (verdict.conclusion) {
    case Conclusion::both:
      return "Both γ and normalisation contribute";
    case Conclusion::gamma:
      return verdict.norm_effect->within_tau ? "γ drives the difference, normalisation does not"
                                             : "γ makes a difference, for normalisation none is established";
    case Conclusion::normalisation:
      return verdict.gamma_effect->within_tau ? "Normalisation drives the difference, γ does not"
                                              : "Normalisation makes a difference, for γ none is established";
    case Conclusion::none:
      return fmt::format("Neither γ nor normalisation changes the mean key PR by τ = {:g} or more", verdict.tau);
    case Conclusion::inconclusive:
      break;
  }
  std::string absent;
  for (std::size_t i = 0; i < n_conditions; ++i)
    if (verdict.mean_pr[i].n == 0)
      absent +=
          fmt::format("{}{} ({})", absent.empty() ? "" : ", ", study_conditions[i].letter, study_conditions[i].tag);
  return absent.empty() ? "Inconclusive, " + inconclusive_reason(verdict) : "Inconclusive without condition " + absent;
}

// The least and the most seeds of a condition.
std::pair<std::size_t, std::size_t> seeds_of(const Verdict& verdict) {
  std::size_t least = verdict.mean_pr[0].n, most = least;
  for (const MeanInterval& condition : verdict.mean_pr) {
    least = std::min(least, condition.n);
    most = std::max(most, condition.n);
  }
  return {least, most};
}

// What the verdict rests on.
std::string basis(const Verdict& verdict) {
  const auto [least, most] = seeds_of(verdict);
  if (most <= 1) return fmt::format("τ = {:g}, one seed: chance is not estimated", verdict.tau);
  return fmt::format("τ = {:g}, {} per condition, Welch's test at 5 %{}", verdict.tau, seeds_text(verdict),
                     least < 2 ? " where both conditions have two seeds" : "");
}

// What was found, in one sentence with its numbers.
std::string verdict_sentence(const Verdict& verdict) {
  std::vector<std::string> parts;
  if (verdict.gamma_effect) {
    std::string text = effect_text(verdict, gamma_contrast, *verdict.gamma_effect);
    if (*verdict.kill_criterion)
      text += verdict.gamma_effect->within_tau ? ", a null result for γ by the kill criterion"
                                               : ", so the means alone meet the kill criterion for γ";
    parts.push_back(text);
  }
  if (verdict.norm_effect) parts.push_back(effect_text(verdict, norm_contrast, *verdict.norm_effect));
  const bool contradiction =
      verdict.conclusion == Conclusion::inconclusive && verdict.gamma_effect && verdict.norm_effect;
  const bool alone = !verdict.gamma_effect && !verdict.norm_effect;
  if (verdict.total_effect && (contradiction || alone))
    parts.push_back(effect_text(verdict, total_contrast, *verdict.total_effect));
  parts.push_back(basis(verdict));
  return fmt::format("{}: {}.", headline(verdict), fmt::join(parts, "; "));
}

}  // namespace

std::string_view conclusion_name(Conclusion conclusion) {
  constexpr std::string_view names[] = {"gamma", "normalisation", "both", "none", "inconclusive"};
  return names[static_cast<std::size_t>(conclusion)];
}

std::string mean_text(const MeanInterval& value, int digits) {
  if (!std::isfinite(value.mean)) return "-";
  const double half = (value.high - value.low) / 2;
  const std::string mean = fixed_text(value.mean, digits);
  if (std::isnan(half)) return mean;
  if (half == 0) return mean + " (all equal)";
  constexpr int most_digits = 12;
  int enough = digits;
  while (enough < most_digits && fixed_text(half, enough).find_first_not_of("0.") == std::string::npos) ++enough;
  return fmt::format("{} ± {}", fixed_text(value.mean, enough), fixed_text(half, enough));
}

std::string conclusion_text(const Verdict& verdict) {
  std::string text(conclusion_name(verdict.conclusion));
  if (verdict.conclusion == Conclusion::none) text += fmt::format(" (no difference of at least τ = {:g})", verdict.tau);
  return text;
}

std::string seeds_text(const Verdict& verdict) {
  const auto [least, most] = seeds_of(verdict);
  if (most <= 1) return "one seed";
  return least == most ? fmt::format("{} seeds", most) : fmt::format("{} to {} seeds", least, most);
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
