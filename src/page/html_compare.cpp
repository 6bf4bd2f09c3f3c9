// Compare: the conditions, effects and measures of a study, and the runs of the page.
#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "heads/findings/answer.h"
#include "page/html_sections.h"
#include "page/html_text.h"
#include "study/verdict.h"

namespace headscope {
namespace {

std::string study_html(const ReportStudy& report) {
  const Verdict& verdict = report.result.verdict;
  std::string text = element("h3", report.name) + "\n" + element("p", verdict.sentence) + "\n";
  text += fmt::format("<p class=\"rule\">τ = {}, compared at {}, {}.</p>\n", escaped(fmt::format("{}", verdict.tau)),
                      escaped(tokens_text(report.result.tokens)), escaped(seeds_text(verdict)));
  TextTable conditions{"conditions",
                       "Mean key PR of each condition, with its 95 % interval over seeds",
                       {"condition", "what it is", "mean PR", "collapse", "validation loss", "runs"},
                       {},
                       0};
  for (std::size_t i = 0; i < verdict.conditions.size(); ++i) {
    const ConditionValues& values = verdict.conditions[i];
    if (values.runs == 0) continue;
    const bool has_loss = i < report.result.val_loss.size() && std::isfinite(report.result.val_loss[i].mean);
    conditions.rows.push_back(
        {values.condition.letter == values.condition.tag
             ? values.condition.tag
             : fmt::format("{} ({})", values.condition.letter, values.condition.tag),
         values.condition.name, mean_text(verdict.mean_pr(i), 2), number_text(finite_mean(values.collapse()).mean),
         has_loss ? mean_text(report.result.val_loss[i], 4) : "–", fmt::format("{}", values.runs)});
  }
  TextTable effects{
      "effects",
      "Differences of mean PR over seeds",
      {"effect", "pair", "difference", "95 % interval", "p (Holm)", "p (equivalence)", "seeds", "outcome"},
      {},
      0};
  for (const Effect& effect : verdict.effects)
    effects.rows.push_back({effect.contrast.name, pair_text(verdict, effect.contrast),
                            difference_text(effect.difference(), verdict.tau),
                            std::isfinite(effect.test.difference.low)
                                ? interval_text(effect.test.difference.low, effect.test.difference.high)
                                : "–",
                            std::isfinite(effect.p_holm) ? p_cell(effect.p_holm) : "–",
                            std::isfinite(effect.test.p_equivalence) ? p_cell(effect.test.p_equivalence) : "–",
                            fmt::format("{}", effect.pairs()), std::string(outcome_name(effect.outcome))});
  text += table_html(conditions) + (effects.rows.empty() ? "" : table_html(effects));
  if (report.result.measures.empty()) return text;
  TextTable measures{
      "measures", "The verdict by other measures of rank", {"measure", "conclusion", "τ", "the same"}, {}, 0};
  for (const MeasureVerdict& measure : report.result.measures)
    measures.rows.push_back({measure.name, std::string(conclusion_name(measure.verdict.conclusion)),
                             number_text(measure.verdict.tau), measure.holds ? (*measure.holds ? "yes" : "no") : "–"});
  return text + table_html(measures);
}

std::string runs_table_html(const ReportData& data) {
  TextTable table{"runs",
                  "Runs in this page",
                  {"run", "command", "status", "seed", "trained", "training loss", "validation loss"},
                  {},
                  0};
  for (const ReportRun& run : data.runs) {
    const auto last = last_moment(run);
    const double loss = training_loss(run), val_loss = validation_loss(run);
    table.rows.push_back({run.name, run.command, status_text(run), run.seed ? fmt::format("{}", *run.seed) : "–",
                          last ? moment_text(*last) : "–", std::isfinite(loss) ? fixed_text(loss, 4) : "–",
                          std::isfinite(val_loss) ? fixed_text(val_loss, 4) : "–"});
  }
  return table_html(table);
}

// Runs that cannot be compared head by head: the page says so.
bool shapes_differ(const ReportData& data) {
  std::optional<HeadCounts> first;
  for (const ReportRun& run : data.runs) {
    if (!run.has_tracks()) continue;
    const HeadCounts counts = run.counts();
    if (first && (first->layers != counts.layers || first->query_heads != counts.query_heads ||
                  first->key_heads != counts.key_heads))
      return true;
    if (!first) first = counts;
  }
  return false;
}

}  // namespace

std::string compare_html(const ReportData& data) {
  std::string text;
  const bool several = std::ranges::count_if(data.runs, &ReportRun::has_tracks) > 1;
  if (several || !data.studies.empty()) text += view("compare");
  if (several && shapes_differ(data))
    text +=
        "<p class=\"note\">The models have different shapes: heads are not compared one by one, thirds of the layers "
        "and means are.</p>\n";
  for (const ReportStudy& study : data.studies) text += study_html(study);
  text += tables_of_kind(data, {"comparison"});
  return data.runs.size() > 1 ? text + runs_table_html(data) : text;
}

}  // namespace headscope
