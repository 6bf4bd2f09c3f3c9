#include <cmath>

#include "study/verdict.h"

namespace headscope {
namespace {

// "6.15"; a number that no measurement gives is not written out.
std::string number_text(double value) {
  return std::fabs(value) < 1e6 ? fmt::format("{:.2f}", value) : fmt::format("{:.3g}", value);
}

// "+0.43", "−0.08" with a true minus sign.
std::string signed_text(double value) {
  return (value < 0 ? "−" : "+") + number_text(std::fabs(value));
}

std::string p_text(double p) {
  return p < 0.001 ? "p < 0.001" : fmt::format("p = {:.2g}", p);
}

// What one step of the design does: from condition `from` to condition `to`.
struct Step {
  std::string_view cause;
  std::size_t from, to;
};
constexpr Step learning{"learning γ", 1, 0}, normalisation{"normalisation", 2, 1}, whole{"QK-Norm as a whole", 2, 0};

// "B 59.55 → A 65.70, p = 0.003"
std::string values_text(const Verdict& verdict, const Step& step, const PairEffect& effect) {
  std::string text =
      fmt::format("{} {} → {} {}", condition_letters[step.from], number_text(verdict.mean_pr[step.from].mean),
                  condition_letters[step.to], number_text(verdict.mean_pr[step.to].mean));
  if (effect.tested) text += ", " + p_text(effect.test.p_value);
  return text;
}

// "learning γ raises the mean key PR by 6.15 (B 59.55 → A 65.70)", or why that cannot be said.
std::string effect_text(const Verdict& verdict, const Step& step, const PairEffect& effect) {
  const double difference = effect.test.difference;
  const std::string values = values_text(verdict, step, effect);
  if (effect.differs())
    return fmt::format("{} {} the mean key PR by {} ({})", step.cause, difference > 0 ? "raises" : "lowers",
                       number_text(std::fabs(difference)), values);
  if (!effect.reaches_tau)
    return fmt::format("{} changes the mean key PR by {}, less than τ = {:g} ({})", step.cause, signed_text(difference),
                       verdict.tau, values);
  return fmt::format("{} changes the mean key PR by {}, not significant at 5 % ({})", step.cause,
                     signed_text(difference), values);
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
      absent += fmt::format("{}{} ({})", absent.empty() ? "" : ", ", condition_letters[i], condition_tags[i]);
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
    std::string text = effect_text(verdict, learning, *verdict.gamma_effect);
    if (*verdict.kill_criterion) text += ", a null result for γ by the kill criterion";
    parts.push_back(text);
  }
  if (verdict.norm_effect) parts.push_back(effect_text(verdict, normalisation, *verdict.norm_effect));
  const bool contradiction =
      verdict.conclusion == Conclusion::inconclusive && verdict.gamma_effect && verdict.norm_effect;
  const bool alone = !verdict.gamma_effect && !verdict.norm_effect;
  if (verdict.total_effect && (contradiction || alone))
    parts.push_back(effect_text(verdict, whole, *verdict.total_effect));
  parts.push_back(basis(verdict));
  return fmt::format("{}: {}.", headline(verdict), fmt::join(parts, "; "));
}

}  // namespace headscope
