#include "heads/figures/role_figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/lists.h"
#include "figures/script.h"
#include "heads/figures/tracking_series.h"

namespace headscope {
namespace {

constexpr std::size_t most_roles = 256;  // in a legend

// Roles have the colours of the categories; the last one, of heads without a clear role, stands back.
Mark of_role(const Mark& mark, const std::vector<std::string>& roles, std::size_t role) {
  return role + 1 == roles.size() ? mark.coloured(muted).faded(0.5) : mark.coloured(category(role));
}

// As much of a role's name as a legend has room for.
std::string legend_name(const std::string& role) {
  return shorten(role, 48);
}

void check_roles(const std::vector<Mark>& shown) {
  if (shown.size() > most_roles) fail_input("{} roles; a legend shows {}", shown.size(), most_roles);
}

Table tiles_of(const RoleMapData& data, std::size_t role) {
  Integers layer, head;
  Numbers score, half;
  for (std::size_t i = 0; i < data.role_of.size(); ++i) {
    if (data.role_of[i] != role) continue;
    layer.push_back(static_cast<std::int64_t>(i / data.heads));
    head.push_back(static_cast<std::int64_t>(i % data.heads));
    score.push_back(data.score_of[i]);
    // The strong area is the score, at least a tenth; a head without a role has no score and one colour.
    const double area = std::isfinite(data.score_of[i]) ? std::clamp(data.score_of[i], 0.1, 1.0) : 1.0;
    half.push_back(0.5 * std::sqrt(area));
  }
  Table table("tiles");
  return table.add("layer", layer).add("head", head).add("score", score).add("half", half);
}

}  // namespace

Figure role_map_figure(const RoleMapData& data) {
  Figure figure{"role_map", "Roles of heads", data.title};
  HEADSCOPE_CHECK(data.role_of.size() == data.layers * data.heads && data.score_of.size() == data.role_of.size(),
                  "{} roles and {} scores of {} x {} heads", data.role_of.size(), data.score_of.size(), data.layers,
                  data.heads);
  std::vector<Mark> behind, filled;
  for (std::size_t role = 0; role < data.roles.size(); ++role) {
    const auto count = std::ranges::count(data.role_of, role);
    if (count == 0) continue;
    figure.data.push_back({fmt::format("role{}", role), tiles_of(data, role)});
    const Mark tile = of_role(Mark::cell(figure.data.back().name, "layer", "head"), data.roles, role);
    const std::string name = fmt::format("{} ({})", legend_name(data.roles[role]), count);
    if (role + 1 == data.roles.size()) {
      filled.push_back(tile.named(name));
      continue;
    }
    behind.push_back(tile.faded(0.4));
    filled.push_back(tile.changed(&Mark::half, "half").named(name));
    figure.notes = {"area of the strong colour: how clear the role is"};
  }
  check_roles(filled);
  behind.insert(behind.end(), filled.begin(), filled.end());
  figure.panels = {{.x = {.kind = Axis::integers, .label = {"layer"}},
                    .y = {.kind = Axis::integers, .label = {"query head"}, .reversed = true},
                    .marks = std::move(behind)}};
  return figure;
}

Figure role_timeline_figure(const RoleTimelineData& data) {
  HEADSCOPE_CHECK(data.share.size() == data.roles.size(), "{} shares of {} roles", data.share.size(),
                  data.roles.size());
  const CourseColumn course = course_column(data.moments);
  Integers reached;
  for (const Course how_far = course_of(data.moments); const Moment& moment : data.moments)
    reached.push_back(how_far.at(moment));
  Panel panel{.x = course.axis,
              .y = {.kind = Axis::share, .label = {"share of heads"}, .include = {0, 1}, .grid = false}};
  panel.x.grid = false;
  panel.x.tight = true;
  // Between two looks nobody knows when a role changed: half of the way each. A change has two rows.
  std::vector<std::size_t> places;
  Integers at;
  for (const std::size_t place : evenly_spaced(data.moments.size(), most_moments)) {
    if (!places.empty()) {
      const std::int64_t middle = std::midpoint(reached[places.back()], reached[place]);
      places.push_back(places.back()), at.push_back(middle);
      places.push_back(place), at.push_back(middle);
    }
    places.push_back(place), at.push_back(reached[place]);
  }
  Table table("roles");
  Numbers below(places.size(), 0.0);
  table.add(course.name, at).add("none", below);
  std::string edge = "none";  // the column that the next area stands on
  for (std::size_t role = 0; role < data.roles.size(); ++role) {
    Numbers share;
    for (const std::size_t place : places) share.push_back(data.share[role].at(place));
    for (std::size_t i = 0; i < share.size(); ++i) below[i] += share[i];
    const std::string name = fmt::format("role{}", role), above = name + "_top";
    if (finite_mean(share) > 0)
      panel.marks.push_back(of_role(Mark::band("roles", course.name, edge, above), data.roles, role)
                                .named(legend_name(data.roles[role])));
    table.add(name, share).add(above, below);
    edge = above;
  }
  check_roles(panel.marks);
  Figure figure{"role_timeline", "Roles over training", data.title};
  if (data.moments.size() == 1) {
    figure.nothing = "one moment: role_map shows it";
  } else if (panel.marks.size() == 1) {
    figure.nothing = fmt::format("every head is {} at every moment", panel.marks[0].name);
  } else {
    figure.data = {{"roles", std::move(table)}};
    figure.panels = {std::move(panel)};
  }
  return figure;
}

}  // namespace headscope
