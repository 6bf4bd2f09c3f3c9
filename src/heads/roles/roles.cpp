#include "heads/roles/roles.h"

#include <algorithm>

#include "core/error.h"
#include "core/missing.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

std::vector<std::size_t> labels_of(const std::vector<HeadRole>& heads) {
  std::vector<std::size_t> labels;
  for (const HeadRole& head : heads) labels.push_back(head.label);
  return labels;
}

std::int64_t layer_of(const RolesResult& result, std::size_t place) {
  return static_cast<std::int64_t>(place) / result.counts.query_heads;
}

std::int64_t head_of(const RolesResult& result, std::size_t place) {
  return static_cast<std::int64_t>(place) % result.counts.query_heads;
}

Table with_definition(Table table, const RolesResult& result) {
  const std::size_t rows = table.rows();
  table.add("definition", Texts(rows, result.definition.id));
  table.add("definition_hash", Texts(rows, result.definition.hash()));
  return table;
}

ordered_json definition_json(const RoleDefinition& definition) {
  ordered_json roles;
  for (const Role& role : definition.roles)
    for (const Minimum& minimum : role.minimums)
      roles[role.name][std::string(score_name(minimum.score))] = minimum.least;
  return {{"id", definition.id}, {"hash", definition.hash()}, {"scores", scores_id}, {"roles", roles}};
}

}  // namespace

std::vector<std::int64_t> RolesResult::role_counts() const {
  return count_labels(labels_of(heads), definition);
}

const Tracks& roles_source(const RunTracks& run, bool from_training) {
  return from_training || run.probe.moments.empty() ? run.train : run.probe;
}

RolesResult roles_of(const Tracks& tracks, const RoleDefinition& definition, std::int64_t d_k) {
  if (tracks.moments.empty() || tracks.counts.layers < 1 || tracks.counts.query_heads < 1)
    fail_input("roles: no query head was measured in '{}' rows; track the groups attention and pattern", tracks.source);
  const std::vector<std::size_t> moments = comparable_moments(tracks, definition);
  if (moments.empty())
    fail_input("roles: no moment of '{}' rows has every metric that '{}' asks for; measure them at the same steps",
               tracks.source, definition.id);
  RolesResult result;
  result.definition = definition;
  result.source = tracks.source;
  result.counts = tracks.counts;
  result.moment = tracks.moments[moments.back()];
  result.unmeasured = unmeasured_scores(tracks, definition);
  std::vector<MomentLabels> labels;
  for (const std::size_t moment : moments) {
    result.heads = roles_at(tracks, moment, definition, d_k);
    labels.push_back({tracks.moments[moment], labels_of(result.heads)});
  }
  result.timeline = timeline_of(labels, definition, tracks.counts.query_heads);
  return result;
}

Table roles_table(const RolesResult& result) {
  Integers layer, head, key_head;
  Texts role;
  Numbers clarity;
  for (std::size_t i = 0; i < result.heads.size(); ++i) {
    layer.push_back(layer_of(result, i));
    head.push_back(head_of(result, i));
    key_head.push_back(head.back() * result.counts.key_heads / result.counts.query_heads);
    role.emplace_back(result.definition.name_of(result.heads[i].label));
    clarity.push_back(result.heads[i].clarity);
  }
  Table table("roles");
  table.add("layer", layer).add("head", head).add("key_head", key_head).add("role", role).add("clarity", clarity);
  for (std::size_t score = 0; score < n_scores; ++score) {
    Numbers values;
    for (const HeadRole& one : result.heads) values.push_back(one.scores.values[score]);
    table.add(std::string(score_name(static_cast<Score>(score))), values);
  }
  return with_definition(std::move(table), result);
}

Table role_timeline_table(const RolesResult& result) {
  Integers step, tokens;
  Texts role;
  Numbers share;
  for (std::size_t i = 0; i < result.timeline.moments.size(); ++i) {
    for (std::size_t label = 0; label <= result.definition.roles.size(); ++label) {
      step.push_back(result.timeline.moments[i].step);
      tokens.push_back(result.timeline.moments[i].tokens);
      role.emplace_back(result.definition.name_of(label));
      share.push_back(result.timeline.shares[i][label]);
    }
  }
  Table table("role_timeline");
  table.add("step", step).add("tokens", tokens).add("role", role).add("share", share);
  return with_definition(std::move(table), result);
}

Table role_transitions_table(const RolesResult& result) {
  Integers layer, head, step, tokens;
  Texts from, to;
  for (const RoleTransition& one : result.timeline.transitions) {
    layer.push_back(one.layer);
    head.push_back(one.head);
    step.push_back(one.moment.step);
    tokens.push_back(one.moment.tokens);
    from.emplace_back(result.definition.name_of(one.from));
    to.emplace_back(result.definition.name_of(one.to));
  }
  Table table("role_transitions");
  table.add("layer", layer).add("head", head).add("step", step).add("tokens", tokens).add("from", from).add("to", to);
  return with_definition(std::move(table), result);
}

ordered_json to_json(const RolesResult& result) {
  const std::vector<std::int64_t> role_counts = result.role_counts();
  ordered_json counts, shares, heads;
  for (std::size_t label = 0; label <= result.definition.roles.size(); ++label) {
    const std::string name(result.definition.name_of(label));
    counts[name] = role_counts[label];
    shares[name] = result.timeline.shares.back()[label];
    heads[name] = ordered_json::array();
    for (std::size_t i = 0; i < result.heads.size(); ++i)
      if (result.heads[i].label == label) heads[name].push_back({layer_of(result, i), head_of(result, i)});
  }
  ordered_json unmeasured = ordered_json::array();
  for (const Score score : result.unmeasured) unmeasured.push_back(score_name(score));
  return {{"definition", definition_json(result.definition)},
          {"source", result.source},
          {"step", result.moment.step},
          {"tokens", result.moment.tokens},
          {"counts", counts},
          {"shares", shares},
          {"moments", result.timeline.moments.size()},
          {"transitions", result.timeline.transitions.size()},
          {"transitions_last_quarter", result.timeline.late_transitions()},
          {"not_measured", unmeasured},
          {"heads", heads}};
}

}  // namespace headscope
