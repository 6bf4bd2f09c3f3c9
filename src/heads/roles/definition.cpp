#include "heads/roles/definition.h"

#include <algorithm>
#include <cmath>

#include "core/atomic_file.h"
#include "core/missing.h"
#include "formats/content_hash.h"
#include "stats/sample_moments.h"

namespace headscope {
namespace {

// Over the key heads that were measured; NaN when none was.
double median_key_norm(std::span<const double> k_norm) {
  std::vector<double> finite;
  std::ranges::copy_if(k_norm, std::back_inserter(finite), [](double value) { return std::isfinite(value); });
  return median(std::move(finite));
}

// How far the largest component reaches from that of a flat key, 1/sqrt(d), to that of a one-hot one, 1.
double axis_alignment(double k_axis, std::int64_t d) {
  const double flat = d > 1 ? 1 / std::sqrt(static_cast<double>(d)) : 0;
  return (k_axis - flat) / (1 - flat);
}

std::vector<std::string> score_names() {
  return {EnumNames<Score>::names.begin(), EnumNames<Score>::names.end()};
}

// Names stand in tables, in JSON, on the terminal and, the id, in the names of folders.
bool is_name(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  return !text.empty() && text.size() <= 100 && text[0] != '.' && std::ranges::all_of(text, allowed);
}

struct RoleKey {
  std::string role, score;
};

// "roles.static_sink.focused"
RoleKey split_key(const ConfigEntry& entry) {
  const std::size_t first = entry.key.find('.');
  const std::string top = entry.key.substr(0, first);
  if (top != "roles")
    fail_input("{}: {}", entry.where, unknown_name("key", top, std::vector<std::string>{"id", "roles"}));
  const std::size_t second = first == std::string::npos ? first : entry.key.find('.', first + 1);
  if (second == std::string::npos)
    fail_input("{}: '{}' is '{}'; expected scores and their minimums: {{focused: 0.5}}", entry.where, entry.key,
               entry.value);
  if (entry.key.find('.', second + 1) != std::string::npos)
    fail_input("{}: '{}' is nested too deep; expected roles.ROLE.SCORE", entry.where, entry.key);
  return {entry.key.substr(first + 1, second - first - 1), entry.key.substr(second + 1)};
}

Score score_named(const std::string& name, const ConfigEntry& entry) {
  Score score{};
  if (parse_value(name, score)) return score;
  const auto known = score_names();
  const std::string nearest = nearest_name(name, known);
  if (nearest.empty())
    fail_input("{}: '{}': there is no score '{}'; the scores are {}", entry.where, entry.key, name,
               fmt::join(known, ", "));
  fail_input("{}: '{}': there is no score '{}'; did you mean '{}'?", entry.where, entry.key, name, nearest);
}

Role& role_named(RoleDefinition& definition, const std::string& name, const ConfigEntry& entry) {
  auto& roles = definition.roles;
  if (!roles.empty() && roles.back().name == name) return roles.back();
  if (name == mixed_role)
    fail_input("{}: '{}': 'mixed' is a head without a role; choose another name", entry.where, entry.key);
  if (!is_name(name))
    fail_input("{}: '{}': a role's name is made of at most 100 letters, digits, '_', '-' and '.'", entry.where,
               entry.key);
  // The mapping `roles` cannot hold a name twice, but a dotted key beside it can add to a role once more.
  if (std::ranges::find(roles, name, &Role::name) != roles.end())
    fail_input("{}: '{}': the role '{}' is given twice", entry.where, entry.key, name);
  return roles.emplace_back(Role{name, {}});
}

void add_minimum(RoleDefinition& definition, const ConfigEntry& entry) {
  const RoleKey key = split_key(entry);
  Role& role = role_named(definition, key.role, entry);
  const Score score = score_named(key.score, entry);
  if (std::ranges::find(role.minimums, score, &Minimum::score) != role.minimums.end())
    fail_input("{}: '{}' is given twice", entry.where, entry.key);
  double least = 0;
  if (!parse_value(entry.value, least) || !(least >= 0 && least <= 1))
    fail_input("{}: '{}' is '{}'; expected a number from 0 to 1", entry.where, entry.key, entry.value);
  role.minimums.push_back({score, least});
}

RoleDefinition parse(const std::string& text, const std::string& origin) {
  RoleDefinition definition{"", origin, {}};
  for (const ConfigEntry& entry : parse_yaml(text, origin)) {
    if (entry.key != "id") {
      add_minimum(definition, entry);
    } else {
      if (!is_name(entry.value))
        fail_input("{}: 'id' is '{}'; expected at most 100 letters, digits, '_', '-' and '.', which is not first",
                   entry.where, entry.value);
      definition.id = entry.value;
    }
  }
  if (definition.id.empty()) fail_input("{}: 'id' is missing; name the definition: 'id: mine-1'", origin);
  if (definition.roles.empty()) fail_input("{}: 'roles' has no role with a minimum", origin);
  return definition;
}

}  // namespace

std::vector<HeadScores> scores_at(const Tracks& tracks, std::size_t moment, std::int64_t head_dimension) {
  const double typical_norm = median_key_norm(tracks.at("k_norm", moment));
  const auto formula = [&](Score score, double value) {
    switch (score) {
      case Score::focused:
      case Score::query_dependent:
        return 1 - value;
      case Score::axis_aligned:
        return axis_alignment(value, head_dimension);
      case Score::high_norm:  // r / (1 + r) with r = value / typical_norm, also where the median is 0
        return value / (typical_norm + value);
      case Score::low_norm:
        return typical_norm / (typical_norm + value);
      default:
        return value;
    }
  };
  const auto [layers, key_heads, query_heads] = tracks.counts;
  std::vector<HeadScores> scores(static_cast<std::size_t>(layers * query_heads));
  for (std::size_t i = 0; i < n_scores; ++i) {
    const auto score = static_cast<Score>(i);
    const std::string_view metric = metric_of(score);
    const auto values = tracks.at(metric, moment);
    const bool of_keys = metric_named(metric, "roles").kind == HeadKind::key;
    for (std::int64_t place = 0; place < layers * query_heads; ++place) {
      const std::int64_t layer = place / query_heads, head = place % query_heads;
      const std::int64_t measured = of_keys ? layer * key_heads + tracks.key_head_of(head) : place;
      const double value = values.empty() ? missing : values[static_cast<std::size_t>(measured)];
      scores[static_cast<std::size_t>(place)][score] =
          std::isfinite(value) ? std::clamp(formula(score, value), 0.0, 1.0) : missing;
    }
  }
  return scores;
}

bool Role::holds(const HeadScores& scores) const {
  return std::ranges::all_of(minimums, [&](const Minimum& one) { return scores[one.score] >= one.least; });
}

std::string RoleDefinition::hash() const {
  std::string text = fmt::format("{}\n", scores_id);
  for (const Role& role : roles) {
    text += role.name;
    // The order of a role's minimums decides nothing.
    std::vector<Minimum> sorted = role.minimums;
    std::ranges::sort(sorted, {}, &Minimum::score);
    for (const Minimum& one : sorted) text += fmt::format(" {}={}", score_name(one.score), one.least);
    text += '\n';
  }
  return content_hash(text);
}

RoleDefinition parse_role_definition(const std::string& text, const std::string& origin) {
  RoleDefinition definition = parse(text, origin);
  const RoleDefinition& built_in = default_role_definition();
  if (definition.id == built_in.id && definition.hash() != built_in.hash())
    fail_input("{}: 'id' is '{}', the built-in definition, whose roles or minimums differ; choose another id", origin,
               definition.id);
  return definition;
}

RoleDefinition read_role_definition(const std::filesystem::path& file) {
  return parse_role_definition(read_file(file), file.string());
}

const RoleDefinition& default_role_definition() {
  static const RoleDefinition definition = parse(std::string(default_roles_text()), "configs/roles/seeds.yaml");
  return definition;
}

}  // namespace headscope
