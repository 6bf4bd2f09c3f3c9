#include "study/study_text.h"

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "stats/distributions.h"

namespace headscope {
namespace {

constexpr std::size_t line_width = 100;

std::string conditions_text(const StudyResult& result) {
  const Verdict& verdict = result.verdict;
  std::size_t width = 13;
  for (const ConditionValues& values : verdict.conditions)
    width = std::max(width, width_of(values.condition.letter) + 1 + values.condition.tag.size());
  std::string text = fmt::format("  {:<{}}  mean key PR     validation loss   collapse   (after {})\n", "condition",
                                 width, tokens_text(result.tokens));
  for (std::size_t i = 0; i < verdict.conditions.size(); ++i) {
    const Condition& condition = verdict.conditions[i].condition;
    const double collapse = finite_mean(verdict.conditions[i].collapse()).mean;
    text += fmt::format("  {:<{}}  {:<14}  {:<16}  {}\n", condition.letter + " " + condition.tag, width,
                        mean_text(verdict.mean_pr(i), 2), mean_text(result.val_loss[i], 3),
                        std::isnan(collapse) ? "-" : fixed_text(collapse, 2));
  }
  if (text.find("±") != std::string::npos) text += fmt::format("  ±: 95 % interval over {}\n", seeds_text(verdict));
  return text;
}

// "+6.15 (+5.90 to +6.40)"
std::string interval_text(const MeanInterval& interval, double tau) {
  if (std::isnan(interval.mean)) return "-";
  const std::string mean = difference_text(interval.mean, tau);
  if (std::isnan(interval.low)) return mean;
  return fmt::format("{} ({} to {})", mean, difference_text(interval.low, tau), difference_text(interval.high, tau));
}

std::string effects_text(const Verdict& verdict) {
  if (verdict.effects.empty()) return "";
  const char* const row = "  {:<{}}  {:<28}  {:<8}  {}\n";
  std::vector<std::string> names;
  for (const Effect& effect : verdict.effects)
    names.push_back(fmt::format("{}, {}", effect.contrast.name, pair_text(verdict, effect.contrast)));
  std::size_t width = 0;
  for (const std::string& name : names) width = std::max(width, width_of(name));
  std::string text =
      fmt::format(fmt::runtime(row), "effect", width, "difference (95 % interval)", "p (Holm)", "outcome");
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Effect& effect = verdict.effects[i];
    std::string outcome(outcome_name(effect.outcome));
    if (effect.outcome != Outcome::undecided) outcome += fmt::format(": {}", effect.word());
    std::string p = std::isnan(effect.p_holm) ? "-" : p_text(effect.p_holm).substr(2);
    if (p.starts_with("= ")) p.erase(0, 2);
    text +=
        fmt::format(fmt::runtime(row), names[i], width, interval_text(effect.test.difference, verdict.tau), p, outcome);
  }
  const bool has_equivalence = std::ranges::any_of(verdict.effects, &Effect::is_equivalent);
  if (has_equivalence && !verdict.descriptive)
    text += "  equivalent: the 90 % interval lies within ± τ (two one-sided tests)\n";
  return text + "\n";
}

// "Key PR falls by 24.32 without QK-Norm (C), by 26.27 with it (A)."
std::string collapse_reading(const Verdict& verdict) {
  const auto collapse = [&](std::size_t i) { return finite_mean(verdict.conditions[i].collapse()).mean; };
  const double with = collapse(0), without = collapse(n_main_conditions - 1);
  if (!(with > 0 && without > 0)) return "";
  return fmt::format("From the first probe on key PR falls by {} without QK-Norm (C), by {} with it (A).",
                     fixed_text(without, 2), fixed_text(with, 2));
}

// Since when the conclusion has held, and what two other ways to read the same runs give.
std::string other_readings(const StudyResult& result) {
  std::vector<std::string> readings;
  if (const std::string collapse = collapse_reading(result.verdict); !collapse.empty()) readings.push_back(collapse);
  if (result.verdict.conclusion != Conclusion::inconclusive)
    readings.push_back(result.held_since == result.tokens
                           ? "The conclusion is that of the last probe alone."
                           : fmt::format("The conclusion has held since {}.", tokens_text(result.held_since)));
  if (result.last_probes)
    readings.push_back(fmt::format("The mean of the last {} probes gives: {}.", probes_of_second_reading,
                                   conclusion_name(result.last_probes->conclusion)));
  std::vector<std::string> at_equal_loss;
  for (std::size_t i = 0; i < result.details.size(); ++i) {
    const Contrast& contrast = result.verdict.effects[i].contrast;
    const double difference = result.details[i].at_equal_loss.mean;
    if (!contrast.is_control && std::isfinite(difference))
      at_equal_loss.push_back(
          fmt::format("{} = {}", pair_text(result.verdict, contrast), difference_text(difference, result.verdict.tau)));
  }
  if (!at_equal_loss.empty())
    readings.push_back(fmt::format("At equal validation loss: {}.", fmt::join(at_equal_loss, ", ")));
  if (readings.empty()) return "";
  return fmt::format("  {}\n", wrapped(fmt::format("{}", fmt::join(readings, " ")), line_width, 2, 2));
}

// The conclusions of other measures of rank, and whether that of the key PR holds under them.
std::string measures_text(const StudyResult& result) {
  if (result.measures.empty()) return "";
  std::string text = fmt::format("  {:<16}  {:>6}", "measure", "τ");
  for (const ConditionValues& values : result.verdict.conditions)
    text += fmt::format("  {:>{}}", values.condition.letter, 6);
  text += "  conclusion\n";
  for (const MeasureVerdict& measure : result.measures) {
    text += fmt::format("  {:<16}  {:>6.2f}", measure.name, measure.verdict.tau);
    for (std::size_t i = 0; i < measure.verdict.conditions.size(); ++i) {
      const double mean = measure.verdict.mean_pr(i).mean;
      const std::size_t width = std::max<std::size_t>(6, width_of(measure.verdict.conditions[i].condition.letter));
      text += fmt::format("  {:>{}}", std::isnan(mean) ? "-" : fixed_text(mean, 2), width);
    }
    text += fmt::format("  {}", conclusion_name(measure.verdict.conclusion));
    if (measure.holds) text += *measure.holds ? ": holds" : ": differs";
    text += "\n";
  }
  return text;
}

}  // namespace

std::string verdict_text(const StudyResult& result) {
  const Verdict& verdict = result.verdict;
  std::string text;
  if (verdict.descriptive)
    text = "descriptive: one seed describes one run of each condition; it does not test a difference\n\n";
  return fmt::format("{}{}\n{}verdict: {}\n  {}\n{}{}", text, conditions_text(result), effects_text(verdict),
                     conclusion_text(verdict), wrapped(verdict.sentence, line_width, 2, 2), other_readings(result),
                     measures_text(result));
}

}  // namespace headscope
