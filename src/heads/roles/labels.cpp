#include "heads/roles/labels.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/missing.h"

namespace headscope {
namespace {

std::set<Score> scores_asked(const RoleDefinition& definition) {
  std::set<Score> scores;
  for (const Role& role : definition.roles)
    for (const Minimum& minimum : role.minimums) scores.insert(minimum.score);
  return scores;
}

bool measured_at(const Tracks& tracks, std::string_view metric, std::size_t moment) {
  return std::ranges::any_of(tracks.at(metric, moment), [](double value) { return std::isfinite(value); });
}

bool ever_measured(const Tracks& tracks, std::string_view metric) {
  for (std::size_t moment = 0; moment < tracks.moments.size(); ++moment)
    if (measured_at(tracks, metric, moment)) return true;
  return false;
}

}  // namespace

HeadRole role_of(const HeadScores& scores, const RoleDefinition& definition) {
  const auto role = std::ranges::find_if(definition.roles, [&](const Role& one) { return one.holds(scores); });
  const auto label = static_cast<std::size_t>(role - definition.roles.begin());
  if (role == definition.roles.end()) return {label, missing, scores};
  double product = 1;
  for (const Minimum& minimum : role->minimums) product *= scores[minimum.score];
  return {label, std::pow(product, 1.0 / static_cast<double>(role->minimums.size())), scores};
}

std::vector<HeadRole> roles_at(const Tracks& tracks, std::size_t moment, const RoleDefinition& definition,
                               std::int64_t head_dimension) {
  std::vector<HeadRole> roles;
  for (const HeadScores& scores : scores_at(tracks, moment, head_dimension))
    roles.push_back(role_of(scores, definition));
  return roles;
}

std::vector<std::int64_t> count_labels(std::span<const std::size_t> labels, const RoleDefinition& definition) {
  std::vector<std::int64_t> counts(definition.roles.size() + 1);
  for (const std::size_t label : labels) ++counts[label];
  return counts;
}

std::int64_t RoleTimeline::late_transitions() const {
  if (moments.empty()) return 0;
  const std::int64_t first = moments.front().tokens, last = moments.back().tokens;
  return std::ranges::count_if(
      transitions, [&](const RoleTransition& one) { return 4 * (one.moment.tokens - first) > 3 * (last - first); });
}

RoleTimeline timeline_of(std::span<const MomentLabels> moments, const RoleDefinition& definition,
                         std::int64_t query_heads) {
  RoleTimeline timeline;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const auto& [moment, labels] = moments[i];
    timeline.moments.push_back(moment);
    std::vector<double>& shares = timeline.shares.emplace_back();
    for (const std::int64_t count : count_labels(labels, definition))
      shares.push_back(static_cast<double>(count) / static_cast<double>(labels.size()));
    if (i == 0) continue;
    for (std::size_t head = 0; head < labels.size(); ++head) {
      const std::size_t before = moments[i - 1].labels[head];
      const auto place = static_cast<std::int64_t>(head);
      if (before != labels[head])
        timeline.transitions.push_back({place / query_heads, place % query_heads, moment, before, labels[head]});
    }
  }
  return timeline;
}

std::vector<std::size_t> comparable_moments(const Tracks& tracks, const RoleDefinition& definition) {
  std::set<std::string_view> metrics;
  for (const Score score : scores_asked(definition))
    if (ever_measured(tracks, metric_of(score))) metrics.insert(metric_of(score));
  std::vector<std::size_t> moments;
  for (std::size_t i = 0; i < tracks.moments.size(); ++i)
    if (std::ranges::all_of(metrics, [&](std::string_view metric) { return measured_at(tracks, metric, i); }))
      moments.push_back(i);
  return moments;
}

std::vector<Score> unmeasured_scores(const Tracks& tracks, const RoleDefinition& definition) {
  std::vector<Score> unmeasured;
  for (const Score score : scores_asked(definition))
    if (!ever_measured(tracks, metric_of(score))) unmeasured.push_back(score);
  return unmeasured;
}

}  // namespace headscope
