#include "heads/findings/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

std::string line(const Row& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

}  // namespace

const Tracks& main_source(const RunTracks& run) {
  return run.probe.moments.empty() ? run.train : run.probe;
}

const Tracks& source_for(const RunTracks& run, std::initializer_list<std::string_view> metrics) {
  const std::span<const std::string_view> wanted(metrics.begin(), metrics.size());
  const Tracks& main = main_source(run);
  const Tracks& other = &main == &run.probe ? run.train : run.probe;
  return !main.has_all(wanted) && other.has_all(wanted) ? other : main;
}

Basis basis_of(const Tracks& tracks, std::initializer_list<std::string_view> metrics) {
  Basis basis{tracks.source, tracks.moments, {}};
  for (const std::string_view metric : metrics)
    if (!tracks.has(metric)) basis.not_tracked.emplace_back(metric);
  return basis;
}

std::span<const double> heads_at_end(const Tracks& tracks, std::string_view metric) {
  return tracks.at(metric, tracks.moments.size() - 1);
}

double group_mean(const Tracks& tracks, std::string_view metric, std::size_t moment, const GroupLayers& group) {
  return finite_mean(tracks.at(metric, moment, group.first, group.last));
}

GroupCurve group_curve(const Tracks& tracks, std::string_view metric, const GroupLayers& group) {
  GroupCurve curve;
  for (std::size_t moment = 0; moment < tracks.moments.size(); ++moment) {
    const double value = group_mean(tracks, metric, moment, group);
    if (moment == 0) curve.start = value;
    curve.end = value;
    if (std::isnan(value) || value >= curve.lowest) continue;
    curve.lowest = value;
    curve.lowest_at = tracks.moments[moment];
  }
  return curve;
}

std::string number_text(double value) {
  if (!std::isfinite(value)) return "–";
  const double size = std::fabs(value);
  const std::string digits = size >= 1000 && size < 1e15 ? fmt::format("{:.0f}", size) : fmt::format("{:.3g}", size);
  return (value < 0 ? "−" : "") + digits;
}

std::string percent_text(double share, std::initializer_list<double> limits) {
  if (!std::isfinite(share)) return "–";
  // A percentage is a share with its point moved by two places; the limits are compared as shares.
  for (int digits = 0; digits <= 6; ++digits) {
    const std::string text = fixed_text(100 * share, digits);
    const double rounded = std::stod(text) / 100;
    const bool kept = std::ranges::all_of(limits, [&](double limit) {
      return (share < limit) == (rounded < limit) && (share > limit) == (rounded > limit);
    });
    if (kept) return text + " %";
  }
  return fixed_text(100 * share, 0) + " %";
}

std::string interval_text(double low, double high) {
  return std::isnan(low) || std::isnan(high) ? "–" : fmt::format("{} to {}", number_text(low), number_text(high));
}

std::string source_text(std::string_view source) {
  return source == "probe" ? "the fixed held-out batch (probe)" : "training batches (train)";
}

std::string layers_text(const GroupLayers& group) {
  const std::string_view name = name_of(group.group);
  if (group.first == group.last) return fmt::format("{} layer ({})", name, group.first);
  return fmt::format("{} layers ({} {} {})", name, group.first, group.last == group.first + 1 ? "and" : "to",
                     group.last);
}

std::string joined(std::span<const std::string> parts) {
  if (parts.empty()) return "";
  if (parts.size() == 1) return parts.front();
  return fmt::format("{} and {}", fmt::join(parts.first(parts.size() - 1), ", "), parts.back());
}

std::string counted(std::size_t n, std::string_view thing) {
  return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s");
}

std::string not_tracked_text(std::span<const std::string> metrics) {
  return fmt::format("Not answered: {} {} not tracked.", joined(metrics), metrics.size() == 1 ? "was" : "were");
}

std::string table_text(const Row& head, const std::vector<Row>& rows) {
  if (rows.empty()) return "";
  std::string text = line(head) + line(Row(head.size(), "---"));
  for (const Row& row : rows) text += line(row);
  return text + "\n";
}

std::string step_cell(const std::optional<Moment>& moment) {
  return moment ? std::to_string(moment->step) : "–";
}

std::string p_cell(double p) {
  if (p < 0.001) return "< 0.001";
  return p < 0.05 && p >= 0.0495 ? fixed_text(p, 4, {0.05}) : number_text(p);  // 0.04998 is not 0.05
}

ordered_json moment_json(const Moment& moment) {
  return {{"step", moment.step}, {"tokens", moment.tokens}};
}

ordered_json list_json(const std::vector<double>& values) {
  return values.empty() ? ordered_json() : ordered_json(values);
}

ordered_json curve_json(const GroupCurve& curve) {
  return {{"start", curve.start}, {"lowest", curve.lowest}, {"lowest_at", known(curve.lowest_at)}, {"end", curve.end}};
}

ordered_json dip_json(const DipTest& test) {
  return {{"n", test.n}, {"dip", test.dip}, {"p_value", test.p_value}};
}

ordered_json decided(const DipTest& test) {
  return std::isnan(test.p_value) ? ordered_json() : ordered_json(test.rejects());
}

ordered_json steps_json(const Basis& basis) {
  ordered_json steps = ordered_json::array();
  for (const Moment& moment : basis.moments) steps.push_back(moment.step);
  return steps;
}

ordered_json answer_json(const std::string& sentence, const Basis& basis) {
  const bool any = !basis.moments.empty();
  return {{"sentence", sentence},
          {"source", any ? ordered_json(basis.source) : ordered_json()},
          {"start", any ? moment_json(basis.moments.front()) : ordered_json()},
          {"end", any ? moment_json(basis.moments.back()) : ordered_json()},
          {"not_tracked", basis.not_tracked}};
}

}  // namespace headscope
