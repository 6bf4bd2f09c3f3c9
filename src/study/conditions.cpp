#include "study/conditions.h"

#include <algorithm>

namespace headscope {
namespace {

const std::vector<Contrast>& known_contrasts() {
  static const std::vector<Contrast> contrasts = {
      {"gamma", "training γ", "QK", "QK_frozen"},
      {"norm", "normalisation", "QK_frozen", "NoQK"},
      {"total", "QK-Norm as a whole", "QK", "NoQK"},
      {"gamma_learning", "learning γ without decay", "QK_nodecay", "QK_frozen", true},
      {"gamma_decay", "decay of γ", "QK", "QK_nodecay", true},
      {"decay_target", "decay of γ to 0 instead of 1", "QK", "QK_decay_to_one", true},
      {"gamma_scale", "a learned factor per layer", "QK_scalar", "QK_frozen", true},
      {"gamma_shape", "the shape of γ", "QK_nodecay", "QK_scalar", true},
      {"temperature", "the spread of scores at the start", "NoQK_scaled", "NoQK", true},
      {"norm_matched", "normalisation at the same spread", "QK_frozen", "NoQK_scaled", true},
  };
  return contrasts;
}

bool holds(const std::vector<Condition>& conditions, std::string_view tag) {
  return std::ranges::find(conditions, tag, &Condition::tag) != conditions.end();
}

}  // namespace

const std::vector<Condition>& known_conditions() {
  static const std::vector<Condition> conditions = {
      {"A", "QK", "A learned γ", {}, "the full effect of QK-Norm"},
      {"B", "QK_frozen", "B γ = 1", {{"train.qk_gain", "fixed"}}, "normalisation alone"},
      {"C", "NoQK", "C no QK-Norm", {{"model.qk_norm", "false"}}, "the baseline"},
      {"A₀", "QK_nodecay", "A₀ γ without decay", {{"optim.gain_decay", "0"}}, "learning of γ from its decay"},
      {"A₁", "QK_decay_to_one", "A₁ γ decays to 1", {{"optim.gain_decay_target", "1"}}, "where decay pulls γ to"},
      {"S",
       "QK_scalar",
       "S one factor per layer",
       {{"model.qk_gain", "scalar"}, {"optim.gain_decay", "0"}},
       "the scale of γ from its shape"},
      {"C′",
       "NoQK_scaled",
       "C′ scores spread as B's at the start",
       {{"model.qk_norm", "false"}, {"model.qk_scale", "matched"}},
       "the temperature of the scores from normalisation"},
  };
  return conditions;
}

bool is_main(std::string_view tag) {
  const auto end = condition_tags.begin() + n_main_conditions;
  return std::find(condition_tags.begin(), end, tag) != end;
}

std::string key_of(const std::string& tag) {
  return is_main(tag) ? std::ranges::find(known_conditions(), tag, &Condition::tag)->letter : tag;
}

bool is_taken(std::string_view name) {
  return std::ranges::find(known_conditions(), name, &Condition::letter) != known_conditions().end() ||
         std::ranges::find(known_contrasts(), name, &Contrast::name) != known_contrasts().end();
}

std::vector<Condition> conditions_with(const std::vector<std::string>& tags, const std::vector<Condition>& own) {
  const auto is_there = [&](const Condition& condition) {
    return std::ranges::find(tags, condition.tag) != tags.end();
  };
  std::vector<Condition> found;
  for (const Condition& condition : known_conditions())
    if (is_main(condition.tag) || is_there(condition)) found.push_back(condition);
  for (Condition condition : own) {
    if (!is_there(condition)) continue;
    const bool is_given = std::ranges::find(found, condition.letter, &Condition::letter) != found.end() ||
                          std::ranges::find(tags, condition.letter) != tags.end();
    if (is_given) condition.letter = condition.tag;
    found.push_back(std::move(condition));
  }
  for (const std::string& tag : tags)
    if (!holds(found, tag)) found.push_back({tag, tag, tag, {}, ""});
  return found;
}

std::vector<Contrast> contrasts_of(const std::vector<Condition>& conditions) {
  std::vector<Contrast> found;
  for (const Contrast& contrast : known_contrasts())
    if (holds(conditions, contrast.first) && holds(conditions, contrast.second)) found.push_back(contrast);
  for (const Condition& condition : conditions)
    if (!holds(known_conditions(), condition.tag))
      found.push_back({condition.tag, condition.tag, condition.tag, std::string(learned_gain_tag), true});
  return found;
}

}  // namespace headscope
