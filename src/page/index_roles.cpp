// The roles of heads: at every moment, the tests at the last one, the changes.
#include "page/index_parts.h"
#include "page/nearest.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

// What each role of the definition asks for.
ordered_json tests_json(const RoleDefinition& definition, const IndexParts& parts) {
  ordered_json tests = ordered_json::array();
  for (std::size_t label = 0; label < definition.roles.size(); ++label)
    for (const Minimum& minimum : definition.roles[label].minimums)
      tests.push_back({{"role", or_null(parts.role_place(definition, label))},
                       {"metric", metric_of(minimum.score)},
                       {"score", score_name(minimum.score)},
                       {"minimum", minimum.least}});
  return tests;
}

// The scores of a head that the tests ask for, in their order. Rounded where that changes no result.
ordered_json values_json(const HeadScores& scores, const RoleDefinition& definition) {
  ordered_json values = ordered_json::array();
  for (const Role& role : definition.roles)
    for (const Minimum& minimum : role.minimums) {
      const double value = scores[minimum.score], rounded = rounded_to_float(value);
      values.push_back((value >= minimum.least) == (rounded >= minimum.least) ? rounded : value);
    }
  return values;
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
    const std::optional<Moment> since = role_since(course, i);
    const auto heads = static_cast<std::size_t>(roles.counts.query_heads);
    if (!parts.choice.has_head(static_cast<std::int64_t>(i / heads), static_cast<std::int64_t>(i % heads))) continue;
    scores.push_back({{"layer", i / heads},
                      {"head", i % heads},
                      {"role", or_null(parts.role_place(roles.definition, roles.heads[i].label))},
                      {"since", since ? ordered_json(since->step) : ordered_json()},
                      {"values", values_json(roles.heads[i].scores, roles.definition)}});
  }
  ordered_json transitions = ordered_json::array();
  constexpr std::size_t most_transitions = 500;  // more would make most of the index
  for (const RoleTransition& change : roles.timeline.transitions) {
    if (!parts.choice.has_head(change.layer, change.head)) continue;
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
          {"tests", tests_json(roles.definition, parts)},
          {"scores", std::move(scores)},
          {"transitions", std::move(transitions)}};
}

}  // namespace headscope
