// When? The changes of roles.
#include <algorithm>

#include "core/text.h"
#include "page/html_sections.h"
#include "page/html_text.h"

namespace headscope {
namespace {

constexpr std::size_t most_transition_rows = 200;

std::string transitions_html(const ReportData& data, const ReportRun& run, const Choice& choice) {
  if (!run.roles) return "";
  const RolesResult& roles = run.roles->roles;
  auto transitions = roles.timeline.transitions;
  std::erase_if(transitions, [&](const RoleTransition& one) { return !choice.has_head(one.layer, one.head); });
  if (transitions.empty())
    return fmt::format("<p class=\"note\">{}: no head changed its role.</p>\n", escaped(label_of(data, run)));
  TextTable table{"transitions",
                  fmt::format("Changes of roles in {}, by the definition {}", label_of(data, run), roles.definition.id),
                  {"head", "step", "tokens", "from", "to"},
                  {},
                  0};
  std::vector<std::string> attributes;
  for (const RoleTransition& change : transitions) {
    if (table.rows.size() == most_transition_rows) {
      table.left_out = transitions.size() - most_transition_rows;
      break;
    }
    table.rows.push_back({head_text(HeadKind::query, change.layer, change.head), fmt::format("{}", change.moment.step),
                          with_separators(change.moment.tokens), std::string(roles.definition.name_of(change.from)),
                          std::string(roles.definition.name_of(change.to))});
    attributes.push_back(fmt::format(" data-head=\"q{}.{}\"", change.layer, change.head));
  }
  return table_html(table, attributes);
}

}  // namespace

std::string time_html(const ReportData& data, const Choice& choice) {
  const ReportRun* run = first_tracked(data);
  if (run == nullptr) return "";
  const bool course =
      std::ranges::any_of(data.runs, [](const ReportRun& one) { return one.tracks.finest().moments.size() > 1; });
  if (!course) return "";
  return view("curves") + view("strips") + (run->roles ? view("role-timeline") : "") +
         transitions_html(data, *run, choice);
}

}  // namespace headscope
