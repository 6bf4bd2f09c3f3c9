// Which heads? The table of heads.
#include <algorithm>

#include "core/text.h"
#include "heads/findings/answer.h"
#include "page/column.h"
#include "page/html_sections.h"
#include "page/html_text.h"

namespace headscope {
namespace {

// Metrics of the table of heads, those that were measured.
constexpr std::string_view shown_metrics[] = {"k_norm", "k_pr",     "k_top_share", "q_norm",    "entropy",
                                              "sink",   "previous", "self",        "constancy", "induction"};

// "k_pr: Gaussian keys 31.4; sink: uniform attention 0.0201, static sink ≥ 0.3"
std::string levels_note(const ReportRun& run, const std::vector<const Metric*>& metrics) {
  std::vector<std::string> parts;
  for (const Metric* metric : metrics) {
    const auto found = run.metric_levels.find(metric->name);
    if (found == run.metric_levels.end() || found->second.empty()) continue;
    std::vector<std::string> texts;
    for (const MetricLevel& level : found->second) texts.push_back(level.text);
    parts.push_back(fmt::format("{}: {}", metric->name, fmt::join(texts, ", ")));
  }
  if (parts.empty()) return "";
  return fmt::format("<p class=\"note levels\">To compare with: {}.</p>\n",
                     escaped(fmt::format("{}", fmt::join(parts, "; "))));
}

// The role of a query head by name.
std::string role_of_head(const RolesResult& roles, std::int64_t layer, std::int64_t head) {
  const auto place = static_cast<std::size_t>(layer * roles.counts.query_heads + head);
  return place < roles.heads.size() ? std::string(roles.definition.name_of(roles.heads[place].label)) : "–";
}

std::string heads_table_html(const ReportData& data, const ReportRun& run, const Choice& choice) {
  const Tracks& tracks = run.tracks.probe.moments.empty() ? run.tracks.train : run.tracks.probe;
  if (tracks.counts.query_heads == 0 && tracks.counts.key_heads == 0) return "";
  TextTable table{
      "heads",
      fmt::format("Query heads of {}{}, measured on {}; values of keys are those of the key head that it reads",
                  label_of(data, run),
                  says_its_training(run, tracks.moments.back()) ? " at " + moment_text(tracks.moments.back()) : "",
                  source_text(tracks.source)),
      {"head"},
      {},
      0};
  const bool of_queries = tracks.counts.query_heads > 0, with_roles = run.roles && of_queries;
  if (with_roles) table.head.emplace_back("role");
  std::vector<const Metric*> metrics;
  for (const std::string_view name : shown_metrics)
    if (tracks.has(name) && choice.has_metric(name)) {
      metrics.push_back(&*std::ranges::find(head_metrics(), name, &Metric::name));
      table.head.emplace_back(name);
    }
  std::vector<std::string> attributes;
  std::vector<std::vector<double>> columns(metrics.size());
  const std::int64_t heads = of_queries ? tracks.counts.query_heads : tracks.counts.key_heads;
  const std::size_t last = tracks.moments.size() - 1;
  for (std::int64_t layer = 0; layer < tracks.counts.layers; ++layer)
    for (std::int64_t head = 0; head < heads; ++head) {
      if (of_queries && !choice.has_head(layer, head)) continue;
      std::vector<std::string> cells = {head_text(of_queries ? HeadKind::query : HeadKind::key, layer, head)};
      if (with_roles) cells.push_back(role_of_head(run.roles->roles, layer, head));
      for (std::size_t i = 0; i < metrics.size(); ++i) {
        const bool of_its_key = metrics[i]->kind == HeadKind::key && of_queries;
        const auto read = static_cast<std::size_t>(of_its_key ? tracks.key_head_of(head) : head);
        const auto values = tracks.at(metrics[i]->name, last, layer, layer);
        columns[i].push_back(read < values.size() ? values[read] : missing);
      }
      table.rows.push_back(std::move(cells));
      attributes.push_back(fmt::format(" data-head=\"{}{}.{}\"", of_queries ? "q" : "k", layer, head));
    }
  for (const std::vector<double>& column : columns) {
    const std::vector<std::string> cells = column_text(column);
    for (std::size_t row = 0; row < cells.size(); ++row) table.rows[row].push_back(cells[row]);
  }
  return table_html(table, attributes) + levels_note(run, metrics);
}

}  // namespace

const ReportRun* first_tracked(const ReportData& data) {
  const auto found = std::ranges::find_if(data.runs, &ReportRun::has_tracks);
  return found == data.runs.end() ? nullptr : &*found;
}

std::string heads_html(const ReportData& data, const Choice& choice) {
  const ReportRun* run = first_tracked(data);
  return run == nullptr ? ""
                        : view("map") + view("scatter") + (choice.heads.empty() ? nearest_html(data, *run) : "") +
                              heads_table_html(data, *run, choice);
}

}  // namespace headscope
