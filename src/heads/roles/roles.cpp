#include "heads/roles/roles.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/missing.h"
#include "core/text.h"
#include "heads/findings/answer.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

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

constexpr std::string_view any_letter = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

char upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

bool is_separator(char c) {
  return c == '_' || c == '-' || c == '.';
}

// Letters for a role, the best first.
std::string letter_candidates(std::string_view name) {
  std::string starts, rest;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (is_separator(name[i])) continue;
    (i == 0 || is_separator(name[i - 1]) ? starts : rest) += upper(name[i]);
  }
  return starts + rest + std::string(any_letter);
}

// "I induction 0, P previous_token 1, …" in lines of at most 100 characters.
std::string legend_lines(const RolesResult& result, const std::string& letters) {
  const std::vector<std::int64_t> counts = result.role_counts();
  std::string text;
  std::size_t column = 0;
  for (std::size_t label = 0; label < counts.size(); ++label) {
    const std::string entry = fmt::format("{} {} {}", letters[label], result.definition.name_of(label), counts[label]);
    const bool fits = column + 2 + entry.size() < 100;  // with a comma behind it
    if (label > 0) text += fits ? ", " : ",\n";
    column = fits ? column + 2 + entry.size() : entry.size();
    text += entry;
  }
  return text + "\n";
}

std::string stability_line(const RolesResult& result) {
  const RoleTimeline& timeline = result.timeline;
  if (timeline.moments.size() < 2) return "measured at one moment: changes of role are not known\n";
  const std::size_t n = timeline.transitions.size();
  return fmt::format("{} change{} of role over {} moments, {} in the last quarter of the {}\n", n, n == 1 ? "" : "s",
                     timeline.moments.size(), timeline.late_transitions(),
                     course_of(timeline.moments).in_tokens ? "tokens" : "updates");
}

std::string unmeasured_line(const RolesResult& result) {
  if (result.unmeasured.empty()) return "";
  std::vector<std::string_view> scores, roles;
  for (const Score score : result.unmeasured) scores.push_back(score_name(score));
  for (const Role& role : result.definition.roles) {
    const bool blocked = std::ranges::any_of(role.minimums, [&](const Minimum& minimum) {
      return std::ranges::find(result.unmeasured, minimum.score) != result.unmeasured.end();
    });
    if (blocked) roles.push_back(role.name);
  }
  return fmt::format("not measured: {}; so no head can be {}\n", fmt::join(scores, ", "), fmt::join(roles, ", "));
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
  const Course course = course_of(moments);
  const std::int64_t first = course.at(moments.front()), last = course.at(moments.back());
  return std::ranges::count_if(
      transitions, [&](const RoleTransition& one) { return 4 * (course.at(one.moment) - first) > 3 * (last - first); });
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

std::vector<std::int64_t> RolesResult::role_counts() const {
  return count_labels(labels_of(heads), definition);
}

const Tracks& roles_source(const RunTracks& run, bool from_training) {
  return from_training || run.probe.moments.empty() ? run.train : run.probe;
}

RolesResult roles_of(const Tracks& tracks, const RoleDefinition& definition, std::int64_t d_k,
                     std::optional<std::int64_t> until) {
  if (tracks.moments.empty() || tracks.counts.layers < 1 || tracks.counts.query_heads < 1)
    fail_input("roles: no query head was measured in '{}' rows; track the groups attention and pattern", tracks.source);
  std::vector<std::size_t> moments = comparable_moments(tracks, definition);
  if (moments.empty())
    fail_input("roles: no moment of '{}' rows has every metric that '{}' asks for; measure them at the same steps",
               tracks.source, definition.id);
  const std::size_t first = moments.front();
  if (until) std::erase_if(moments, [&](std::size_t moment) { return tracks.moments[moment].step > *until; });
  if (moments.empty()) fail_before_the_first(*until, tracks, first);
  RolesResult result;
  result.until = until;
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
  Rows<std::int64_t, std::int64_t, std::int64_t, std::string, double> rows(
      {"layer", "head", "key_head", "role", "clarity"});
  for (std::size_t i = 0; i < result.heads.size(); ++i) {
    const std::int64_t head = head_of(result, i);
    rows.add(layer_of(result, i), head, head * result.counts.key_heads / result.counts.query_heads,
             std::string(result.definition.name_of(result.heads[i].label)), result.heads[i].clarity);
  }
  Table table = rows.take();
  for (std::size_t score = 0; score < n_scores; ++score) {
    Numbers values;
    for (const HeadRole& one : result.heads) values.push_back(one.scores.values[score]);
    table.add(std::string(score_name(static_cast<Score>(score))), values);
  }
  return with_definition(std::move(table), result);
}

Table role_timeline_table(const RolesResult& result) {
  Rows<std::int64_t, std::int64_t, std::string, double> rows({"step", "tokens", "role", "share"});
  for (std::size_t i = 0; i < result.timeline.moments.size(); ++i) {
    const auto& [step, tokens] = result.timeline.moments[i];
    for (std::size_t label = 0; label <= result.definition.roles.size(); ++label)
      rows.add(step, tokens, std::string(result.definition.name_of(label)), result.timeline.shares[i][label]);
  }
  return with_definition(rows.take(), result);
}

Table role_transitions_table(const RolesResult& result) {
  const auto name = [&](std::size_t label) { return std::string(result.definition.name_of(label)); };
  Rows<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::string, std::string> rows(
      {"layer", "head", "step", "tokens", "from", "to"});
  for (const RoleTransition& one : result.timeline.transitions)
    rows.add(one.layer, one.head, one.moment.step, one.moment.tokens, name(one.from), name(one.to));
  return with_definition(rows.take(), result);
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
  ordered_json object = {{"definition", definition_json(result.definition)},
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
  if (result.until) object["until_step"] = *result.until;
  return object;
}

std::string role_text(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '_', ' ');
  return text;
}

std::string role_letters(const RoleDefinition& definition) {
  std::string letters;
  for (const Role& role : definition.roles) {
    const std::string candidates = letter_candidates(role.name);
    const std::size_t free = candidates.find_first_not_of(letters);
    letters += free == std::string::npos ? '?' : candidates[free];  // after 62 roles
  }
  return letters + '.';
}

std::string to_terminal(const RolesResult& result) {
  const std::string letters = role_letters(result.definition);
  std::string text =
      fmt::format("roles{}, on {}, definition {}\n", result.moment.step == 0 ? "" : " at " + moment_text(result.moment),
                  source_text(result.source), result.definition.id);
  text += fmt::format("layer  query heads 0 to {}\n", result.counts.query_heads - 1);
  const auto heads = static_cast<std::size_t>(result.counts.query_heads);
  for (std::size_t i = 0; i < result.heads.size(); ++i) {
    if (i % heads == 0) text += fmt::format("{:>5}  ", i / heads);
    text += letters[result.heads[i].label];
    if ((i + 1) % heads == 0) text += '\n';
  }
  return text + legend_lines(result, letters) + unmeasured_line(result) + stability_line(result);
}

}  // namespace headscope
