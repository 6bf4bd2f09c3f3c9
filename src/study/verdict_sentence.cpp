#include <algorithm>
#include <cmath>

#include "core/wording.h"
#include "study/verdict.h"

namespace headscope {
namespace {

// A mean PR: "6.15"; shorter where it is larger than any measurement.
std::string pr_text(double value) {
  return std::fabs(value) < 1e6 ? fmt::format("{:.2f}", value) : fmt::format("{:.3g}", value);
}

// "learning γ raises the mean key PR by 6.15 (B 59.55 → A 65.70, p = 0.003)", or why that cannot be said.
std::string effect_text(const Verdict& verdict, const Contrast& contrast, const PairEffect& effect) {
  const double difference = effect.test.difference;
  const std::string size = pr_text(std::fabs(difference));
  std::string found;
  if (effect.differs())
    found = fmt::format("{} the mean key PR by {}", difference > 0 ? "raises" : "lowers", size);
  else
    found = fmt::format("changes the mean key PR by {}{}, {}", difference < 0 ? "−" : "+", size,
                        effect.reaches_tau ? "not significant at 5 %" : fmt::format("less than τ = {:g}", verdict.tau));
  const auto value_of = [&](std::size_t condition) {
    return fmt::format("{} {}", study_conditions[condition].letter, pr_text(verdict.mean_pr[condition].mean));
  };
  return fmt::format("{} {} ({} → {}{})", contrast.cause, found, value_of(contrast.without), value_of(contrast.with),
                     effect.tested ? ", " + p_text(effect.test.p_value) : "");
}

std::string headline(const Verdict& verdict) {
  switch (verdict.conclusion) {
    case Conclusion::both:
      return "Both γ and normalisation contribute";
    case Conclusion::gamma:
      return verdict.norm_effect->reaches_tau ? "γ makes a difference, for normalisation none is established"
                                              : "γ drives the difference, normalisation does not";
    case Conclusion::normalisation:
      return verdict.gamma_effect->reaches_tau ? "Normalisation makes a difference, for γ none is established"
                                               : "Normalisation drives the difference, γ does not";
    case Conclusion::none:
      return "Neither γ nor normalisation makes a difference";
    case Conclusion::inconclusive:
      break;
  }
  std::string absent;
  for (std::size_t i = 0; i < n_conditions; ++i)
    if (verdict.mean_pr[i].n == 0)
      absent +=
          fmt::format("{}{} ({})", absent.empty() ? "" : ", ", study_conditions[i].letter, study_conditions[i].tag);
  return absent.empty() ? "Inconclusive" : "Inconclusive without condition " + absent;
}

// What the verdict rests on.
std::string basis(const Verdict& verdict) {
  std::size_t least = verdict.mean_pr[0].n, most = least;
  for (const MeanInterval& condition : verdict.mean_pr) {
    least = std::min(least, condition.n);
    most = std::max(most, condition.n);
  }
  if (most <= 1) return fmt::format("τ = {:g}, one seed: chance is not estimated", verdict.tau);
  const std::string seeds = least == most ? fmt::format("{} seeds", most) : fmt::format("{} to {} seeds", least, most);
  return fmt::format("τ = {:g}, {} per condition, Welch's test at 5 %{}", verdict.tau, seeds,
                     least < 2 ? " where both conditions have two seeds" : "");
}

}  // namespace

std::string verdict_sentence(const Verdict& verdict) {
  std::vector<std::string> parts;
  if (verdict.gamma_effect) {
    std::string text = effect_text(verdict, gamma_contrast, *verdict.gamma_effect);
    if (*verdict.kill_criterion) text += ", a null result for γ by the kill criterion";
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

}  // namespace headscope
