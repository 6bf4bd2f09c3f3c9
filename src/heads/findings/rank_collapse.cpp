#include "heads/findings/rank_collapse.h"

#include <algorithm>
#include <cmath>

namespace headscope {
namespace {

using nlohmann::ordered_json;

constexpr double one_hot_axis = 0.9, privileged_share = 0.5;

double value_of(std::span<const double> heads, std::size_t head) {
  return heads.empty() ? missing : heads[head];
}

void find_one_hot(const Tracks& tracks, RankCollapse& found) {
  for (const double axis : heads_at_end(tracks, "k_axis")) {
    found.axis_heads += std::isfinite(axis) ? 1 : 0;
    found.one_hot += axis >= one_hot_axis ? 1 : 0;
  }
}

void find_privileged(const Tracks& tracks, RankCollapse& found) {
  const std::span<const double> shares = heads_at_end(tracks, "k_top_share"),
                                dimensions = heads_at_end(tracks, "k_top_dim"),
                                energies = heads_at_end(tracks, "k_top_energy");
  for (std::size_t i = 0; i < shares.size(); ++i) {
    found.share_heads += std::isfinite(shares[i]) ? 1 : 0;
    if (!(shares[i] >= privileged_share)) continue;
    const auto place = static_cast<std::int64_t>(i);
    PrivilegedDimension one{place / tracks.counts.key_heads, place % tracks.counts.key_heads, std::nullopt, shares[i],
                            value_of(energies, i)};
    const double dimension = value_of(dimensions, i);
    if (std::isfinite(dimension)) one.dimension = static_cast<std::int64_t>(dimension);
    found.privileged.push_back(one);
  }
  std::ranges::stable_sort(found.privileged, std::greater{}, &PrivilegedDimension::top_share);
}

// "24.1 to 11 in the middle layers (8 to 14), lowest 10.2 at step 300"
std::string curve_text(const RankCurve& rank, bool has_course) {
  const std::string group = layers_text(rank.group);
  const GroupCurve& curve = rank.curve;
  if (!has_course) return fmt::format("{} in the {}", number_text(curve.end), group);
  std::string text = fmt::format("{} to {} in the {}", number_text(curve.start), number_text(curve.end), group);
  if (curve.lowest < 0.98 * std::min(curve.start, curve.end))  // else the two ends say it
    text += fmt::format(", lowest {} at step {}", number_text(curve.lowest), curve.lowest_at->step);
  return text;
}

std::string rank_text(const RankCollapse& found) {
  if (found.curves.empty()) return "Effective rank: neither k_pr nor k_erank nor k_pr_vector was tracked.";
  std::vector<std::string> groups;
  const std::string_view metric = found.curves.front().metric;
  for (const RankCurve& rank : found.curves)
    if (rank.metric == metric) groups.push_back(curve_text(rank, found.ranks.has_course()));
  return fmt::format("The effective rank of the keys ({}) {} {}.", metric,
                     found.ranks.has_course() ? "went from" : "is", fmt::join(groups, "; "));
}

std::string outlier_text(const RankCollapse& found) {
  if (!found.outliers.not_tracked.empty() && found.axis_heads + found.share_heads == 0)
    return " One-hot heads and privileged dimensions: k_axis and k_top_share were not tracked.";
  std::string text;
  if (found.axis_heads > 0)
    text += fmt::format(" {} of {} {} one-hot (the largest component is 0.9 of the norm or more).", found.one_hot,
                        counted(found.axis_heads, "key head"), found.one_hot == 1 ? "is" : "are");
  if (found.share_heads > 0)
    text += fmt::format(" {} of {} {} a privileged dimension (it is the largest in half of the keys or more)",
                        found.privileged.size(), counted(found.share_heads, "key head"),
                        found.privileged.size() == 1 ? "has" : "have");
  if (found.privileged.empty()) return text + (found.share_heads > 0 ? "." : "");
  const PrivilegedDimension& first = found.privileged.front();
  return text + fmt::format(", above all {}{}: largest in {} of its keys, with {} of the energy.",
                            head_text(HeadKind::key, first.layer, first.head),
                            first.dimension ? fmt::format(" (dimension {})", *first.dimension) : "",
                            percent_text(first.top_share), percent_text(first.top_energy));
}

// The source of the first effective rank that any source has.
const Tracks& source_of_ranks(const RunTracks& run) {
  for (const std::string_view metric : effective_ranks)
    if (run.train.has(metric) || run.probe.has(metric)) return source_for(run, {metric});
  return main_source(run);
}

}  // namespace

RankCollapse find_rank_collapse(const RunTracks& run) {
  const Tracks& ranks = source_of_ranks(run);
  const Tracks& outliers = source_for(run, {"k_axis", "k_top_share"});
  RankCollapse found;
  found.ranks = basis_of(ranks, {"k_pr", "k_erank", "k_pr_vector"});
  found.outliers = basis_of(outliers, {"k_axis", "k_top_dim", "k_top_share", "k_top_energy"});
  for (const std::string_view metric : effective_ranks) {
    if (!ranks.has(metric)) continue;
    for (const GroupLayers& group : layer_groups(ranks.counts.layers))
      found.curves.push_back({metric, group, group_curve(ranks, metric, group)});
  }
  find_one_hot(outliers, found);
  find_privileged(outliers, found);
  found.sentence = rank_text(found) + outlier_text(found);
  return found;
}

ordered_json to_json(const RankCollapse& found) {
  ordered_json ranks;
  for (const std::string_view metric : effective_ranks) ranks[std::string(metric)] = nullptr;
  for (const RankCurve& rank : found.curves)
    ranks[std::string(rank.metric)][std::string(name_of(rank.group.group))] = curve_json(rank.curve);
  ordered_json privileged = ordered_json::array();
  for (const PrivilegedDimension& one : found.privileged)
    privileged.push_back({{"layer", one.layer},
                          {"head", one.head},
                          {"dimension", known(one.dimension)},
                          {"k_top_share", one.top_share},
                          {"k_top_energy", one.top_energy}});
  ordered_json object = answer_json(found.sentence, found.ranks);
  for (const std::string& metric : found.outliers.not_tracked) object["not_tracked"].push_back(metric);
  object["effective_rank"] = ranks;
  object["outlier_source"] = found.outliers.source;  // of what follows
  object["one_hot_share"] = found.one_hot_share();
  object["one_hot_heads"] = found.axis_heads == 0 ? ordered_json() : ordered_json(found.one_hot);
  object["privileged_dimensions"] = found.share_heads == 0 ? ordered_json() : privileged;
  return object;
}

std::string tables_of(const RankCollapse& found) {
  std::vector<Row> ranks, privileged;
  const bool has_course = found.ranks.has_course();
  for (const RankCurve& rank : found.curves) {
    const std::string metric = fmt::format("`{}`", rank.metric), end = number_text(rank.curve.end);
    ranks.push_back(has_course ? Row{metric, layers_text(rank.group), number_text(rank.curve.start),
                                     number_text(rank.curve.lowest), step_cell(rank.curve.lowest_at), end}
                               : Row{metric, layers_text(rank.group), end});
  }
  for (const PrivilegedDimension& one : found.privileged) {
    if (privileged.size() == most_listed) break;
    privileged.push_back({head_text(HeadKind::key, one.layer, one.head),
                          one.dimension ? std::to_string(*one.dimension) : "–", percent_text(one.top_share),
                          percent_text(one.top_energy)});
  }
  const std::size_t more = found.privileged.size() - privileged.size();
  const Row head = has_course ? Row{"effective rank", "layers", "start", "lowest", "at step", "end"}
                              : Row{"effective rank", "layers", "value"};
  return table_text(head, ranks) +
         table_text({"key head", "privileged dimension", "largest in (share of its keys)", "share of the energy"},
                    privileged) +
         (more > 0 ? fmt::format("And {} more heads.\n\n", more) : "");
}

}  // namespace headscope
