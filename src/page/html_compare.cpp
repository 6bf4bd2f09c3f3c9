// Compare: the verdict of a study (html_study.cpp), runs side by side, the list of runs.
#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "page/html_sections.h"
#include "page/html_text.h"

namespace headscope {
namespace {

std::string runs_table_html(const ReportData& data) {
  TextTable table{"runs",
                  "Runs in this page",
                  {"run", "command", "status", "seed", "trained", "training loss", "validation loss"},
                  {},
                  0};
  for (const ReportRun& run : data.runs) {
    const auto last = last_moment(run);
    const double loss = training_loss(run), val_loss = validation_loss(run);
    table.rows.push_back({label_of(data, run), run.command, status_text(run),
                          run.seed ? fmt::format("{}", *run.seed) : "–", last ? moment_text(*last) : "–",
                          std::isfinite(loss) ? fixed_text(loss, 4) : "–",
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
  for (const ReportStudy& study : data.studies)
    text += (data.studies.size() > 1 ? element("h3", study.name) + "\n" : "") + study_html(study);
  if (several || !data.studies.empty()) text += view("compare");
  if (several && shapes_differ(data))
    text +=
        "<p class=\"note\">The models have different shapes: heads are not compared one by one, thirds of the layers "
        "and means are.</p>\n";
  text += tables_of_kind(data, {"comparison"});
  return data.runs.size() > 1 ? text + runs_table_html(data) : text;
}

}  // namespace headscope
