#include <algorithm>

#include "heads/roles/roles.h"

namespace headscope {
namespace {

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

std::string stability_line(const RolesResult& result) {
  const RoleTimeline& timeline = result.timeline;
  if (timeline.moments.size() < 2) return "one moment: no timeline\n";
  const std::size_t n = timeline.transitions.size();
  return fmt::format("{} change{} of role over {} moments, {} in the last quarter of the tokens\n", n,
                     n == 1 ? "" : "s", timeline.moments.size(), timeline.late_transitions());
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
  std::string text = fmt::format("roles at step {} ({:.1f} M tokens, {} rows), definition {}\n", result.moment.step,
                                 static_cast<double>(result.moment.tokens) / 1e6, result.source, result.definition.id);
  text += fmt::format("layer  query heads 0 to {}\n", result.counts.query_heads - 1);
  const auto heads = static_cast<std::size_t>(result.counts.query_heads);
  for (std::size_t i = 0; i < result.heads.size(); ++i) {
    if (i % heads == 0) text += fmt::format("{:>5}  ", i / heads);
    text += letters[result.heads[i].label];
    if ((i + 1) % heads == 0) text += '\n';
  }
  const std::vector<std::int64_t> counts = result.role_counts();
  for (std::size_t label = 0; label < counts.size(); ++label)
    text += fmt::format("{} {} {}{}", letters[label], result.definition.name_of(label), counts[label],
                        label + 1 < counts.size() ? ", " : "\n");
  return text + unmeasured_line(result) + stability_line(result);
}

}  // namespace headscope
