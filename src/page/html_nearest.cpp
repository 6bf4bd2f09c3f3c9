// Which heads? The head nearest to each role: the clearest one that has it, or the one that lacks least.
#include <algorithm>

#include "core/text.h"
#include "heads/findings/answer.h"
#include "page/html_sections.h"
#include "page/html_text.h"
#include "page/nearest.h"

namespace headscope {
namespace {

struct Nearest {
  std::string role;
  std::int64_t heads = 0;  // that have it
  std::int64_t layer = 0, head = 0;
  std::vector<std::string> passed = {}, failed = {};  // "induction 0.064 < 0.5 (short by 0.436)"
  std::string counts_as = {};                         // another role that it has, although it passes
  std::optional<Moment> since = {};
  std::string not_measured = {};  // why there is no such head

  [[nodiscard]] std::string name() const { return head_text(HeadKind::query, layer, head); }
};

void add_test(const Minimum& minimum, double value, Nearest& nearest) {
  const std::string text = fmt::format("{} {}", score_name(minimum.score), fixed_text(value, 3, {minimum.least}));
  if (value >= minimum.least)
    nearest.passed.push_back(fmt::format("{} ≥ {}", text, minimum.least));
  else
    nearest.failed.push_back(
        fmt::format("{} < {} (short by {})", text, minimum.least, number_text(minimum.least - value)));
}

Nearest nearest_to(const RoleCourse& course, std::size_t label) {
  const RolesResult& roles = course.roles;
  const Role& role = roles.definition.roles[label];
  Nearest nearest{role_text(role.name), roles.role_counts()[label]};
  const std::optional<std::size_t> place = nearest_head(roles, label);
  if (!place) {
    std::vector<std::string_view> scores;
    for (const Minimum& minimum : role.minimums)
      if (std::ranges::find(roles.unmeasured, minimum.score) != roles.unmeasured.end())
        scores.push_back(score_name(minimum.score));
    nearest.not_measured = fmt::format("not measured{}{}", scores.empty() ? "" : ": ", fmt::join(scores, ", "));
    return nearest;
  }
  nearest.layer = static_cast<std::int64_t>(*place) / roles.counts.query_heads;
  nearest.head = static_cast<std::int64_t>(*place) % roles.counts.query_heads;
  const HeadRole& head = roles.heads[*place];
  for (const Minimum& minimum : role.minimums) add_test(minimum, head.scores[minimum.score], nearest);
  if (head.label == label)
    nearest.since = role_since(course, *place);
  else if (nearest.failed.empty())
    nearest.counts_as = role_text(roles.definition.name_of(head.label));
  return nearest;
}

// "No head has the role induction; the nearest is L1H2: induction 0.064 < 0.5 (short by 0.436)."
std::string sentence_of(const Nearest& one) {
  const std::string passed = fmt::format("{}", fmt::join(one.passed, ", "));
  if (!one.not_measured.empty())
    return fmt::format("Whether a head has the role {} is not known ({}).", one.role, one.not_measured);
  if (one.heads > 0)
    return fmt::format("{} the role {}{} {}: {}{}.",
                       one.heads == 1 ? "One head has" : fmt::format("{} heads have", one.heads), one.role,
                       one.heads == 1 ? "," : "; the clearest is", one.name(), passed,
                       one.since ? fmt::format(", since step {}", one.since->step) : "");
  if (one.failed.empty())
    return fmt::format("No head has the role {}; {} would ({}), but counts as {}, which comes first.", one.role,
                       one.name(), passed, one.counts_as);
  return fmt::format("No head has the role {}; the nearest is {}: {}.", one.role, one.name(),
                     fmt::join(one.failed, ", "));
}

std::vector<std::string> row_of(const Nearest& one) {
  const std::string count = fmt::format("{}", one.heads);
  if (!one.not_measured.empty()) return {one.role, count, "–", "–", one.not_measured, "–"};
  const auto listed = [](const std::vector<std::string>& tests) {
    return tests.empty() ? "–" : fmt::format("{}", fmt::join(tests, ", "));
  };
  return {one.role,
          count,
          one.name(),
          listed(one.passed),
          one.counts_as.empty() ? listed(one.failed) : fmt::format("counts as {}, which comes first", one.counts_as),
          one.since ? fmt::format("{}", one.since->step) : "–"};
}

}  // namespace

std::string nearest_html(const ReportData& data, const ReportRun& run) {
  if (!run.roles || run.roles->roles.definition.roles.empty()) return "";
  const RoleDefinition& definition = run.roles->roles.definition;
  TextTable table{"nearest",
                  fmt::format("For each role of the definition {}, in {}: the clearest head that has it, or the head "
                              "that comes nearest to it",
                              definition.id, label_of(data, run)),
                  {"role", "heads", "head", "passes", "fails", "since step"},
                  {},
                  0};
  std::vector<std::string> attributes;
  std::string sentence;  // of the first role: the most specific one
  for (std::size_t label = 0; label < definition.roles.size(); ++label) {
    const Nearest nearest = nearest_to(*run.roles, label);
    if (label == 0) sentence = sentence_of(nearest);
    table.rows.push_back(row_of(nearest));
    attributes.push_back(
        nearest.not_measured.empty() ? fmt::format(" data-head=\"q{}.{}\"", nearest.layer, nearest.head) : "");
  }
  const std::string of_run = data.runs.size() > 1 ? label_of(data, run) + ": " : "";
  return fmt::format("<p class=\"nearest\">{}</p>\n", escaped(of_run + sentence)) + table_html(table, attributes);
}

}  // namespace headscope
