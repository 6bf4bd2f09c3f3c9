#include "study/effects.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/missing.h"
#include "stats/sample_moments.h"

namespace headscope {
namespace {

using Values = std::vector<double>;

Outcome outcome_of(const Effect& effect, double tau, bool descriptive) {
  const bool reaches_tau = std::fabs(effect.difference()) >= tau;
  if (effect.pairs() < (descriptive ? 1u : 2u)) return Outcome::undecided;
  if (descriptive) return reaches_tau ? Outcome::different : Outcome::equivalent;
  if (reaches_tau && effect.p_holm < significance) return Outcome::different;
  return effect.test.p_equivalence < significance ? Outcome::equivalent : Outcome::undecided;
}

void adjust(std::vector<Effect>& effects, bool controls) {
  Values p_values;
  for (const Effect& effect : effects)
    p_values.push_back(effect.contrast.is_control == controls ? effect.test.p_value : missing);
  const Values adjusted = holm_adjusted(p_values);
  for (std::size_t i = 0; i < effects.size(); ++i)
    if (effects[i].contrast.is_control == controls) effects[i].p_holm = adjusted[i];
}

}  // namespace

std::string_view outcome_name(Outcome outcome) {
  constexpr std::string_view names[] = {"different", "equivalent", "undecided"};
  return names[static_cast<std::size_t>(outcome)];
}

Values ConditionValues::collapse() const {
  Values fallen;
  for (std::size_t i = 0; i < end.size(); ++i) fallen.push_back(start[i] - end[i]);
  return fallen;
}

const ConditionValues& values_of(const std::vector<ConditionValues>& conditions, const std::string& tag) {
  const auto found = std::ranges::find(conditions, tag, [](const ConditionValues& one) { return one.condition.tag; });
  HEADSCOPE_CHECK(found != conditions.end(), "no values of condition {}", tag);
  return *found;
}

std::string_view Effect::word() const {
  if (is_different()) return difference() > 0 ? "protects" : "worsens";
  return is_equivalent() ? "does nothing" : "undecided";
}

Values paired_differences(const Values& first, const Values& second) {
  Values differences;
  for (std::size_t i = 0; i < first.size(); ++i)
    if (const double difference = first[i] - second[i]; std::isfinite(difference)) differences.push_back(difference);
  return differences;
}

std::vector<Effect> effects_of(const std::vector<ConditionValues>& conditions, double tau, bool descriptive) {
  std::vector<Condition> there;
  for (const ConditionValues& values : conditions)
    if (values.runs > 0) there.push_back(values.condition);
  std::vector<Effect> effects;
  for (const Contrast& contrast : contrasts_of(there)) {
    const ConditionValues &first = values_of(conditions, contrast.first),
                          &second = values_of(conditions, contrast.second);
    const Values differences = paired_differences(first.end, second.end);
    Effect effect{.contrast = contrast, .test = paired_test(differences, tau)};
    effect.collapse_difference = mean_interval(paired_differences(first.collapse(), second.collapse())).mean;
    effect.p_sign_flip = differences.size() >= fewest_flips ? sign_flip_test(differences) : missing;
    effects.push_back(effect);
  }
  for (const bool controls : {false, true}) adjust(effects, controls);
  for (Effect& effect : effects) effect.outcome = outcome_of(effect, tau, descriptive);
  return effects;
}

const Effect* find_effect(const std::vector<Effect>& effects, std::string_view name) {
  const auto found = std::ranges::find(effects, name, [](const Effect& effect) { return effect.contrast.name; });
  return found == effects.end() ? nullptr : &*found;
}

}  // namespace headscope
