#include "study/verdict.h"

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "stats/distributions.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;
using Values = std::vector<double>;

// The outcomes of A - B, B - C and A - C; empty where one of them is not there.
std::vector<Outcome> main_outcomes(const Verdict& verdict) {
  std::vector<Outcome> outcomes;
  for (const char* name : {"gamma", "norm", "total"})
    if (const Effect* effect = verdict.find(name)) outcomes.push_back(effect->outcome);
  return outcomes.size() == 3 ? outcomes : std::vector<Outcome>{};
}

Conclusion conclude(const Verdict& verdict) {
  constexpr Outcome D = Outcome::different, E = Outcome::equivalent, U = Outcome::undecided;
  using Outcomes = std::vector<Outcome>;
  const Outcomes found = main_outcomes(verdict);
  if (found == Outcomes{D, D, D}) return Conclusion::both;
  if (found == Outcomes{D, D, E}) return Conclusion::opposed;
  if (found == Outcomes{D, E, D} || found == Outcomes{D, E, U}) return Conclusion::gamma;
  if (found == Outcomes{E, D, D} || found == Outcomes{E, D, U}) return Conclusion::normalisation;
  return found == Outcomes{E, E, E} ? Conclusion::none : Conclusion::inconclusive;
}

// NaN and infinity become null when dumped.
ordered_json effect_json(const Effect& effect) {
  const auto& [interval, p_value, p_equivalence] = effect.test;
  ordered_json object = {{"difference", interval.mean},
                         {"collapse_difference", effect.collapse_difference},
                         {"standard_error", interval.standard_error},
                         {"low", interval.low},
                         {"high", interval.high},
                         {"p_value", p_value},
                         {"p_equivalence", p_equivalence},
                         {"p_holm", effect.p_holm},
                         {"seeds", interval.n},
                         {"outcome", outcome_name(effect.outcome)},
                         {"word", effect.word()}};
  if (!std::isnan(effect.p_sign_flip)) object["p_sign_flip"] = effect.p_sign_flip;
  return object;
}

ordered_json difference_json(const Effect* effect) {
  return effect != nullptr ? ordered_json(effect->difference()) : ordered_json();
}

ordered_json optional_json(const std::optional<bool>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

// A mean PR: "6.15"; shorter where it is larger than any measurement.
std::string pr_text(double value) {
  return std::fabs(value) < 1e6 ? fixed_text(value, 2) : fmt::format("{:.3g}", value);
}

// What can be said of the rank: "protects rank, A − B = +6.15".
std::string found_text(const Verdict& verdict, const Effect& effect) {
  const double difference = effect.difference(), tau = verdict.tau;
  if (std::isnan(difference)) return "is not known, no seed has a sound run of both";
  const std::string value =
      fmt::format("{} = {}", pair_text(verdict, effect.contrast), difference_text(difference, tau));
  if (effect.is_different()) return fmt::format("{} rank, {}", effect.word(), value);
  if (effect.is_equivalent()) return fmt::format("does nothing, {}, less than τ = {:g}", value, tau);
  if (effect.pairs() < 2) return fmt::format("is undecided, {} with one pair", value);
  const auto& [mean, error, low, high, n] = effect.test.difference;
  return fmt::format("is undecided, {}, {}: 95 % interval {} to {}", value,
                     std::fabs(mean) >= tau ? "not significant at 5 %" : "not shown to be less than τ",
                     difference_text(low, tau), difference_text(high, tau));
}

// "training γ protects rank, A − B = +6.15 (B 59.55 → A 65.70, p = 0.003)"
std::string effect_text(const Verdict& verdict, const Effect& effect) {
  const auto value_of = [&](const std::string& tag) {
    const ConditionValues& values = values_of(verdict.conditions, tag);
    const double mean = finite_mean(values.end).mean;
    return fmt::format("{} {}", values.condition.letter, std::isnan(mean) ? "diverged" : pr_text(mean));
  };
  const double p = effect.is_equivalent() ? effect.test.p_equivalence : effect.p_holm;
  const std::string of_test = effect.is_equivalent() ? ", equivalence " : ", ";
  return fmt::format("{} {} ({} → {}{})", effect.contrast.cause, found_text(verdict, effect),
                     value_of(effect.contrast.second), value_of(effect.contrast.first),
                     std::isnan(p) ? "" : of_test + p_text(p));
}

// Why nothing can be concluded.
std::string inconclusive_reason(const Verdict& verdict) {
  std::vector<std::string> absent, outcomes;
  for (std::size_t i = 0; i < n_main_conditions; ++i)
    if (const auto& [condition, end, start, runs] = verdict.conditions[i]; runs == 0)
      absent.push_back(fmt::format("{} ({})", condition.letter, condition.tag));
  if (!absent.empty()) return fmt::format(" without condition {}", fmt::join(absent, ", "));
  for (const Effect& effect : verdict.effects)
    if (!effect.contrast.is_control)
      outcomes.push_back(fmt::format("{} is {}", pair_text(verdict, effect.contrast), outcome_name(effect.outcome)));
  return fmt::format(", {}", fmt::join(outcomes, ", "));
}

std::string headline(const Verdict& verdict) {
  switch (verdict.conclusion) {
    case Conclusion::both:
      return "Both γ and normalisation change the rank of keys";
    case Conclusion::opposed:
      return "γ and normalisation change the rank of keys in opposite ways that cancel";
    case Conclusion::gamma:
      return "γ changes the rank of keys, normalisation does not";
    case Conclusion::normalisation:
      return "Normalisation changes the rank of keys, γ does not";
    case Conclusion::none:
      return fmt::format("Neither γ nor normalisation changes the mean key PR by τ = {:g} or more", verdict.tau);
    case Conclusion::inconclusive:
      break;
  }
  return "Inconclusive" + inconclusive_reason(verdict);
}

// The least and the most seeds of a condition that was run.
std::pair<std::size_t, std::size_t> seeds_of(const Verdict& verdict) {
  std::vector<std::size_t> seeds;
  for (std::size_t i = 0; i < verdict.conditions.size(); ++i)
    if (verdict.conditions[i].runs > 0) seeds.push_back(verdict.mean_pr(i).n);
  if (seeds.empty()) return {0, 0};
  const auto [least, most] = std::ranges::minmax(seeds);
  return {least, most};
}

// What the verdict rests on.
std::string basis(const Verdict& verdict) {
  if (verdict.descriptive) return fmt::format("τ = {:g}, one seed: chance is not estimated", verdict.tau);
  if (seeds_of(verdict).second <= 1)
    return fmt::format("τ = {:g}, {} with sound runs: nothing is tested", verdict.tau, seeds_text(verdict));
  return fmt::format("τ = {:g}, {}, paired t tests with Holm's adjustment and equivalence tests at 5 %", verdict.tau,
                     seeds_text(verdict));
}

// Where A₀ is there: what A − B is made of.
std::string parts_of_gamma(const Verdict& verdict) {
  std::vector<std::string> parts;
  for (const Effect& effect : verdict.effects)
    if (effect.contrast.name == "gamma_learning" || effect.contrast.name == "gamma_decay")
      parts.push_back(effect_text(verdict, effect));
  return parts.size() < 2 ? "" : fmt::format(" A − B has two parts: {}.", fmt::join(parts, "; "));
}

// What was found, in one sentence with its numbers, and another about γ where there is more to say. The total stands
// where it decides.
std::string verdict_sentence(const Verdict& verdict) {
  std::vector<std::string> parts;
  const bool with_total = verdict.conclusion == Conclusion::inconclusive || verdict.conclusion == Conclusion::opposed;
  for (const Effect& effect : verdict.effects) {
    const bool is_total = effect.contrast.name == "total";
    if (effect.contrast.is_control || (is_total && !with_total)) continue;
    std::string text = effect_text(verdict, effect);
    if (effect.contrast.name == "gamma" && verdict.kill_criterion.value_or(false))
      text += *verdict.kill_supported ? ", a null result for γ by the kill criterion"
                                      : ", so the means alone meet the kill criterion for γ";
    parts.push_back(text);
  }
  parts.push_back(basis(verdict));
  return fmt::format("{}: {}.{}", headline(verdict), fmt::join(parts, "; "), parts_of_gamma(verdict));
}

}  // namespace

std::string_view conclusion_name(Conclusion conclusion) {
  constexpr std::string_view names[] = {"gamma", "normalisation", "both", "opposed", "none", "inconclusive"};
  return names[static_cast<std::size_t>(conclusion)];
}

MeanInterval finite_mean(Values values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  return mean_interval(values);
}

MeanInterval Verdict::mean_pr(std::size_t condition) const {
  return finite_mean(conditions[condition].end);
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

std::string difference_text(double value, double tau) {
  std::string text = std::fabs(value) < 1e6 ? signed_text(value, 2, {-tau, tau}) : fmt::format("{:+.3g}", value);
  if (text.starts_with('-')) text.replace(0, 1, "−");
  return text;
}

std::string pair_text(const Verdict& verdict, const Contrast& contrast) {
  return fmt::format("{} − {}", values_of(verdict.conditions, contrast.first).condition.letter,
                     values_of(verdict.conditions, contrast.second).condition.letter);
}

std::string conclusion_text(const Verdict& verdict) {
  std::string text(conclusion_name(verdict.conclusion));
  if (verdict.conclusion == Conclusion::none) text += fmt::format(" (no difference of at least τ = {:g})", verdict.tau);
  return text;
}

std::string seeds_text(const Verdict& verdict) {
  const auto [least, most] = seeds_of(verdict);
  const std::size_t all = verdict.conditions.front().end.size();
  if (most <= 1 && all > 1) return fmt::format("{} of {} seeds", most == 0 ? "none" : "one", all);
  if (most <= 1) return "one seed";
  return least == most ? fmt::format("{} seeds", most) : fmt::format("{} to {} seeds", least, most);
}

Verdict decide(std::vector<ConditionValues> conditions, double tau) {
  Verdict verdict;
  verdict.tau = tau;
  verdict.descriptive = conditions.front().end.size() == 1;
  verdict.conditions = std::move(conditions);
  verdict.effects = effects_of(verdict.conditions, tau, verdict.descriptive);
  if (const Effect* gamma = verdict.find("gamma"); gamma != nullptr && gamma->pairs() > 0) {
    verdict.kill_criterion = std::fabs(gamma->difference()) < tau;
    verdict.kill_supported = gamma->is_equivalent();
  }
  verdict.conclusion = conclude(verdict);
  verdict.sentence = verdict_sentence(verdict);
  return verdict;
}

ordered_json to_json(const MeanInterval& interval) {
  return {{"n", interval.n},
          {"mean", interval.mean},
          {"standard_error", interval.standard_error},
          {"low", interval.low},
          {"high", interval.high}};
}

ordered_json to_json(const Verdict& verdict) {
  ordered_json means, seeds, collapse, effects = ordered_json::object();
  for (const ConditionValues& values : verdict.conditions) {
    const MeanInterval interval = finite_mean(values.end);
    means[key_of(values.condition.tag)] = interval.mean;
    seeds[key_of(values.condition.tag)] = to_json(interval);
    if (values.runs > 0) collapse[values.condition.tag] = finite_mean(values.collapse()).mean;
  }
  for (const Effect& effect : verdict.effects) effects[effect.contrast.name] = effect_json(effect);
  ordered_json object = {{"mean_pr", means},
                         {"gamma_effect", difference_json(verdict.find("gamma"))},
                         {"norm_effect", difference_json(verdict.find("norm"))},
                         {"tau", verdict.tau},
                         {"descriptive", verdict.descriptive},
                         {"kill_criterion", optional_json(verdict.kill_criterion)},
                         {"kill_supported", optional_json(verdict.kill_supported)},
                         {"conclusion", conclusion_name(verdict.conclusion)},
                         {"sentence", verdict.sentence},
                         {"collapse", collapse},
                         {"effects", effects}};
  if (!verdict.descriptive) object["seeds"] = seeds;
  return object;
}

}  // namespace headscope
