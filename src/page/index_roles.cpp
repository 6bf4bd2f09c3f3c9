// The roles of heads: at every moment, the tests at the last one, the changes.
#include <algorithm>
#include <cmath>

#include "page/index_parts.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

// The minimums of the head's role, or of the role that it comes nearest to.
ordered_json tests_json(const HeadRole& head, const RoleDefinition& definition, const IndexParts& parts) {
  const auto shortfall = [&](const Role& role) {
    double sum = 0;
    for (const Minimum& minimum : role.minimums) {
      const double value = head.scores[minimum.score];
      sum += std::isfinite(value) ? std::max(0.0, minimum.least - value) : 1;
    }
    return sum;
  };
  std::size_t label = head.label;
  if (label >= definition.roles.size()) {
    const auto nearest = std::ranges::min_element(definition.roles, {}, shortfall);
    if (nearest == definition.roles.end()) return ordered_json::array();
    label = static_cast<std::size_t>(nearest - definition.roles.begin());
  }
  ordered_json tests = ordered_json::array();
  for (const Minimum& minimum : definition.roles[label].minimums) {
    const double value = head.scores[minimum.score];
    tests.push_back({{"role", or_null(parts.role_place(definition, label))},
                     {"metric", metric_of(minimum.score)},
                     {"score", score_name(minimum.score)},
                     {"value", rounded_to_float(value)},
                     {"minimum", minimum.least},
                     {"maximum", nullptr},
                     {"passed", value >= minimum.least}});
  }
  return tests;
}

}  // namespace

ordered_json roles_json(const ReportRun& run, IndexParts& parts) {
  if (!run.roles) return nullptr;
  const RoleCourse& course = *run.roles;
  const RolesResult& roles = course.roles;
  std::vector<Moment> moments;
  std::set<std::int64_t> changes;
  for (const MomentLabels& labels : course.labels) moments.push_back(labels.moment);
  for (const RoleTransition& transition : roles.timeline.transitions) changes.insert(transition.moment.step);
  const Places places = kept_moments(moments, changes, parts.detail.moments);
  std::string bytes;
  for (const std::size_t place : places)
    for (const std::size_t label : course.labels[place].labels)
      bytes += static_cast<char>(parts.role_place(roles.definition, label).value_or(no_role));
  ordered_json scores = ordered_json::array();
  for (std::size_t i = 0; i < roles.heads.size(); ++i) {
    std::size_t first = course.labels.size();
    while (first > 0 && course.labels[first - 1].labels[i] == roles.heads[i].label) --first;
    const auto heads = static_cast<std::size_t>(roles.counts.query_heads);
    scores.push_back(
        {{"layer", i / heads},
         {"head", i % heads},
         {"role", or_null(parts.role_place(roles.definition, roles.heads[i].label))},
         {"since", first < course.labels.size() ? ordered_json(course.labels[first].moment.step) : ordered_json()},
         {"tests", tests_json(roles.heads[i], roles.definition, parts)}});
  }
  ordered_json transitions = ordered_json::array();
  constexpr std::size_t most_transitions = 500;  // more would make most of the index
  for (const RoleTransition& change : roles.timeline.transitions) {
    if (transitions.size() == most_transitions) {
      parts.say(fmt::format("changes of roles after the first {}", most_transitions));
      break;
    }
    transitions.push_back({{"step", change.moment.step},
                           {"tokens", change.moment.tokens},
                           {"layer", change.layer},
                           {"head", change.head},
                           {"from", or_null(parts.role_place(roles.definition, change.from))},
                           {"to", or_null(parts.role_place(roles.definition, change.to))}});
  }
  return {{"definition", roles.definition.id},
          {"source", roles.source},
          {"step", places_json(moments, places, &Moment::step)},
          {"tokens", places_json(moments, places, &Moment::tokens)},
          {"of_head", {{"block", parts.block(block_text(bytes))}}},
          {"scores", std::move(scores)},
          {"transitions", std::move(transitions)}};
}

}  // namespace headscope
