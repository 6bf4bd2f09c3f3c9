// Can I trust it? The metrics with their formulas and errors, what was reduced, the manifests.
#include <algorithm>

#include "core/json_text.h"
#include "page/formulas.h"
#include "page/html_sections.h"
#include "page/html_text.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

std::string error_cell(const MetricError& error, bool exact) {
  if (exact) return "float32";
  std::vector<std::string> parts;
  if (error.absolute > 0) parts.push_back("± " + fmt::format("{:.2g}", error.absolute));
  if (error.relative > 0) parts.push_back(fmt::format("± {:.2g} %", 100 * error.relative));
  return parts.empty() ? "exact" : fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

std::string trust_html(const ReportData& data, const PageContent& content) {
  std::string text;
  const nlohmann::ordered_json& reduced = content.index.at("reduced");
  if (const auto moments = reduced.at("moments").get<std::int64_t>(); !content.errors.empty() && moments > 1)
    text += fmt::format(
        "<p>Curves, strips and maps of earlier moments have {} bits; of each source at most {} moments are kept. The "
        "last moment is {}. The largest error of each metric is in the table.</p>\n",
        reduced.at("bits").dump(), moments, content.exact_last ? "exact" : "in float32");
  else if (!content.errors.empty())
    text += "<p>The values of heads are exact.</p>\n";
  if (std::ranges::any_of(data.runs, [](const ReportRun& run) { return !run.attention.heads.empty(); }))
    text +=
        "<p>Attention on texts has 8 bits, of the root of a weight: its error is at most 0.004 near 1 and 0.0004 near "
        "0.01.</p>\n";
  if (!content.left_out.empty() || !data.notes.empty()) {
    text += "<ul class=\"reduced\">\n";
    for (const std::string& one : content.left_out) text += "<li>" + escaped("Reduced: " + one) + "</li>\n";
    for (const std::string& note : data.notes) text += "<li>" + escaped("Note: " + note) + "</li>\n";
    text += "</ul>\n";
  }
  if (!content.errors.empty()) {
    TextTable metrics{"metrics", "Metrics of this page", {"metric", "meaning", "formula", "unit"}, {}, 0};
    const bool has_curves = reduced.at("moments").get<std::int64_t>() > 1;
    if (has_curves) metrics.head.emplace_back("largest error in curves");
    for (const Metric& metric : head_metrics())
      if (const auto found = content.errors.find(std::string(metric.name)); found != content.errors.end()) {
        metrics.rows.push_back(
            {std::string(metric.name), std::string(metric.meaning), formula_of(metric.name), std::string(metric.unit)});
        if (has_curves) metrics.rows.back().push_back(error_cell(found->second, reduced.at("exact").get<bool>()));
      }
    text += table_html(metrics);
  }
  for (const nlohmann::ordered_json& manifest : data.manifests)
    text += fmt::format("<details><summary>Manifest and configuration: {}</summary><pre>{}</pre></details>\n",
                        escaped(text_at(manifest, "command_line", text_at(manifest, "command"))),
                        escaped(json_text(manifest)));
  return text;
}

}  // namespace headscope
