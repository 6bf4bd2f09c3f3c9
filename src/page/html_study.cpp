// The verdict of a study: a sentence to quote, the legend of its conditions, tables of conditions, effects and
// measures.
#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "heads/findings/answer.h"
#include "page/html_sections.h"
#include "page/html_text.h"
#include "stats/distributions.h"
#include "study/verdict.h"

namespace headscope {
namespace {

// "γ = 1" of "B γ = 1".
std::string_view name_without_letter(const Condition& condition) {
  const std::string_view name = condition.name;
  const bool has_letter = name.starts_with(condition.letter) && name.substr(condition.letter.size()).starts_with(' ');
  return has_letter ? name.substr(condition.letter.size() + 1) : name;
}

// "train.qk_gain = fixed"; nothing where it is not known.
std::string changes_text(const Condition& condition) {
  if (condition.tag == learned_gain_tag) return "no change";
  std::vector<std::string> changes;
  for (const auto& [key, value] : condition.changes) changes.push_back(fmt::format("{} = {}", key, value));
  return fmt::format("{}", fmt::join(changes, ", "));
}

std::string difference_interval(const Effect& effect, double tau) {
  const MeanInterval& found = effect.test.difference;
  if (!std::isfinite(found.low)) return "–";
  return fmt::format("{} to {}", difference_text(found.low, tau), difference_text(found.high, tau));
}

// "A − C = −1.62"
std::string difference_of(const Verdict& verdict, const Effect& effect) {
  return fmt::format("{} = {}", pair_text(verdict, effect.contrast), difference_text(effect.difference(), verdict.tau));
}

// "training γ worsens it, A − B = −5.79 (−6.57 to −5.02)"
std::string part_text(const Verdict& verdict, const Effect& effect) {
  const std::string found = verdict.descriptive      ? ""
                            : effect.is_different()  ? fmt::format(" {} it", effect.word())
                            : effect.is_equivalent() ? fmt::format(" changes it by less than τ = {:g}", verdict.tau)
                                                     : " is undecided";
  const std::string interval = difference_interval(effect, verdict.tau);
  return fmt::format("{}{}, {}{}", effect.contrast.cause, found, difference_of(verdict, effect),
                     interval == "–" ? "" : fmt::format(" ({})", interval));
}

// The total first: "QK-Norm as a whole worsens rank: A − C = −1.62 in mean key PR (95 % interval …, 5 seeds, p =
// 0.026)."
std::string total_text(const Verdict& verdict, const Effect& total) {
  const std::string difference = difference_of(verdict, total) + " in mean key PR";
  const std::string& cause = total.contrast.cause;
  if (verdict.descriptive)
    return fmt::format("{}: {}. One seed describes one run of each condition; it does not test a difference.", cause,
                       difference);
  const double p = total.is_equivalent() ? total.test.p_equivalence : total.p_holm;
  std::vector<std::string> sure;
  if (const std::string interval = difference_interval(total, verdict.tau); interval != "–")
    sure.push_back("95 % interval " + interval);
  sure.push_back(total.pairs() == 1 ? "one seed" : fmt::format("{} seeds", total.pairs()));
  if (!std::isnan(p)) sure.push_back((total.is_equivalent() ? "equivalence " : "") + p_text(p));
  const std::string found = total.is_different() ? fmt::format("{} {} rank", cause, total.word())
                            : total.is_equivalent()
                                ? fmt::format("{} changes rank by less than τ = {:g}", cause, verdict.tau)
                                : fmt::format("What {} does to rank is undecided", cause);
  return fmt::format("{}: {} ({}).", found, difference, fmt::join(sure, ", "));
}

TextTable conditions_table(const StudyResult& result) {
  const Verdict& verdict = result.verdict;
  TextTable table{
      "conditions",
      fmt::format("Mean key PR of each condition after {}{}; collapse is its fall since the untrained model",
                  tokens_text(result.tokens), verdict.descriptive ? "" : ", with its 95 % interval over seeds"),
      {"condition", "what it is", "mean PR", "collapse", "validation loss", "runs"},
      {},
      0};
  for (std::size_t i = 0; i < verdict.conditions.size(); ++i) {
    const auto& [condition, end, start, runs] = verdict.conditions[i];
    if (runs == 0) continue;
    const bool has_loss = i < result.val_loss.size() && std::isfinite(result.val_loss[i].mean);
    const double collapse = finite_mean(verdict.conditions[i].collapse()).mean;
    table.rows.push_back(
        {condition.letter == condition.tag ? condition.tag : fmt::format("{} ({})", condition.letter, condition.tag),
         std::string(name_without_letter(condition)), mean_text(verdict.mean_pr(i), 2),
         std::isfinite(collapse) ? fixed_text(collapse, 2) : "–", has_loss ? mean_text(result.val_loss[i], 4) : "–",
         fmt::format("{}", runs)});
  }
  return table;
}

std::string rule_of_outcomes(const Verdict& verdict) {
  if (verdict.descriptive)
    return fmt::format("Differences of final mean key PR, first − second, of one seed: nothing is tested; τ = {:g}",
                       verdict.tau);
  return fmt::format(
      "Differences of final mean key PR, first − second, over seeds. Different: p (Holm) below 0.05 and at least τ = "
      "{0:g} in size. Equivalent: smaller than τ = {0:g} with p (equivalence) below 0.05, which need not be zero. "
      "Otherwise undecided. Holm's adjustment is within A, B and C, and within the controls; intervals are not "
      "adjusted",
      verdict.tau);
}

TextTable effects_table(const Verdict& verdict) {
  TextTable table{
      "effects",
      rule_of_outcomes(verdict),
      {"effect of", "pair", "difference", "95 % interval", "p (Holm)", "p (equivalence)", "seeds", "outcome"},
      {},
      0};
  const auto p_text_of = [](double p) {
    return !std::isfinite(p) ? "–" : p < 0.001 ? "< 0.001" : fixed_text(p, 3, {significance});
  };
  for (const Effect* effect : total_first(verdict)) {
    std::string outcome(outcome_name(effect->outcome));
    if (effect->is_different() && !verdict.descriptive) outcome += fmt::format(": {} rank", effect->word());
    table.rows.push_back({effect->contrast.cause, pair_text(verdict, effect->contrast),
                          difference_text(effect->difference(), verdict.tau), difference_interval(*effect, verdict.tau),
                          p_text_of(effect->p_holm), p_text_of(effect->test.p_equivalence),
                          fmt::format("{}", effect->pairs()), outcome});
  }
  return table;
}

// Whether the total effect of another measure has the sign of that of the key PR.
bool has_sign_of_total(const Verdict& verdict, const Verdict& measure) {
  const Effect *total = verdict.find("total"), *other = measure.find("total");
  return total != nullptr && other != nullptr && total->difference() * other->difference() > 0;
}

TextTable measures_table(const StudyResult& result) {
  TextTable table{"measures",
                  "The conclusion, and the effect of QK-Norm as a whole, by other measures of rank",
                  {"measure", "conclusion", "the same", "A − C", "95 % interval", "same sign", "τ"},
                  {},
                  0};
  for (const MeasureVerdict& measure : result.measures) {
    const Effect* total = measure.verdict.find("total");
    const double tau = measure.verdict.tau;
    const bool known = total != nullptr && std::isfinite(total->difference());
    table.rows.push_back({measure.name, std::string(conclusion_name(measure.verdict.conclusion)),
                          measure.holds ? (*measure.holds ? "yes" : "no") : "–",
                          known ? difference_text(total->difference(), tau) : "–",
                          known ? difference_interval(*total, tau) : "–",
                          !known                                               ? "–"
                          : has_sign_of_total(result.verdict, measure.verdict) ? "yes"
                                                                               : "no",
                          fixed_text(tau, 2)});
  }
  return table;
}

}  // namespace

std::string study_summary(const StudyResult& result) {
  const Verdict& verdict = result.verdict;
  const Effect *total = verdict.find("total"), *gamma = verdict.find("gamma"), *norm = verdict.find("norm");
  if (total == nullptr || !std::isfinite(total->difference())) return verdict.sentence;
  std::vector<std::string> parts;
  for (const Effect* part : {gamma, norm})
    if (part != nullptr && std::isfinite(part->difference())) parts.push_back(part_text(verdict, *part));
  std::string text = total_text(verdict, *total);
  if (!parts.empty()) text += fmt::format(" Its parts: {}.", fmt::join(parts, "; "));
  if (!result.measures.empty() && total->is_different())
    text += fmt::format(" {} of {} other measures of rank give {} the same sign.",
                        std::ranges::count_if(
                            result.measures,
                            [&](const MeasureVerdict& measure) { return has_sign_of_total(verdict, measure.verdict); }),
                        result.measures.size(), pair_text(verdict, total->contrast));
  return text;
}

std::string legend_html(const Verdict& verdict) {
  std::string text = "<dl class=\"legend\">\n";
  for (const ConditionValues& values : verdict.conditions) {
    if (values.runs == 0) continue;
    const std::string changes = changes_text(values.condition);
    text += "<div>" + element("dt", values.condition.letter) + "<dd>" + escaped(name_without_letter(values.condition)) +
            (changes.empty() ? "" : " " + element("code", changes)) + "</dd></div>\n";
  }
  return text + "</dl>\n";
}

std::string study_html(const ReportStudy& report) {
  const Verdict& verdict = report.result.verdict;
  std::string text = table_html(effects_table(verdict)) + table_html(conditions_table(report.result));
  text += fmt::format("<p class=\"long\">{}</p>\n", escaped(verdict.sentence));
  return report.result.measures.empty() ? text : text + table_html(measures_table(report.result));
}

}  // namespace headscope
