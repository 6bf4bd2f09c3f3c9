#include "heads/figures/role_figures.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/lists.h"
#include "figures/script.h"
#include "figures/table_limits.h"
#include "heads/figures/tracking_series.h"

namespace headscope {
namespace {

// Roles have the colours of the categories; the last one, of heads without a clear role, stands back.
Colour role_colour(std::size_t role, std::size_t roles) {
  return role + 1 == roles ? Colour{.role = Colour::absent} : category(role);
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
    // The filled area is the score; a head without one still shows its role.
    const double area = std::isfinite(data.score_of[i]) ? std::clamp(data.score_of[i], 0.04, 1.0) : 0.04;
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
  if (data.role_of.empty()) return empty_figure(figure.name, figure.title, data.title);
  std::vector<Mark> behind, filled;
  for (std::size_t role = 0; role < data.roles.size(); ++role) {
    const auto count = std::ranges::count(data.role_of, role);
    if (count == 0) continue;
    figure.data.push_back({fmt::format("role{}", role), tiles_of(data, role)});
    const Mark tile =
        Mark::cell(figure.data.back().name, "layer", "head").coloured(role_colour(role, data.roles.size()));
    behind.push_back(tile.faded(0.25));
    filled.push_back(
        tile.changed(&Mark::half, "half").named(fmt::format("{} ({})", legend_name(data.roles[role]), count)));
  }
  check_roles(filled);
  behind.insert(behind.end(), filled.begin(), filled.end());
  const auto layers = static_cast<std::int64_t>(data.layers), heads = static_cast<std::int64_t>(data.heads);
  figure.panels = {{.x = labelled(integer_axis(0, layers - 1, 16), {"layer"}),
                    .y = labelled(integer_axis(0, heads - 1, 8), {"query head"}),
                    .marks = std::move(behind)}};
  figure.notes = {"filled area: how clear the role is"};
  figure.grid = {.aspect = static_cast<double>(heads) / static_cast<double>(layers),
                 .most_width = (layers < 8 ? 72.0 : 60.0) * static_cast<double>(layers),
                 .page = layers > 40};
  return figure;
}

Figure role_timeline_figure(const RoleTimelineData& data) {
  Figure figure{"role_timeline", "Roles over training", data.title};
  HEADSCOPE_CHECK(data.share.size() == data.roles.size(), "{} shares of {} roles", data.share.size(),
                  data.roles.size());
  Panel panel;
  Integers tokens;
  const auto places = evenly_spaced(data.tokens.size(), most_moments);
  for (const std::size_t place : places) tokens.push_back(data.tokens[place]);
  Table table("roles");
  Numbers below(places.size(), 0.0);
  table.add("tokens", tokens).add("none", below);
  std::string edge = "none";  // the column that the next area stands on
  for (std::size_t role = 0; role < data.roles.size(); ++role) {
    Numbers share;
    for (const std::size_t place : places) share.push_back(data.share[role].at(place));
    for (std::size_t i = 0; i < share.size(); ++i) below[i] += share[i];
    const std::string name = fmt::format("role{}", role), above = name + "_top";
    if (finite_mean(share) > 0)
      panel.marks.push_back(Mark::band("roles", "tokens", edge, above)
                                .coloured(role_colour(role, data.roles.size()))
                                .named(legend_name(data.roles[role])));
    table.add(name, share).add(above, below);
    edge = above;
  }
  if (panel.marks.empty()) return empty_figure(figure.name, figure.title, data.title);
  check_roles(panel.marks);
  panel.x = token_axis({tokens.begin(), tokens.end()});
  const auto [first, last] = std::ranges::minmax(tokens);
  if (first < last) panel.x.high = static_cast<double>(last);  // areas end at the frame
  panel.y = labelled(unit_axis({0, 1}), {"share of heads"});
  panel.x.grid = panel.y.grid = false;
  figure.data = {{"roles", std::move(table)}};
  figure.panels = {std::move(panel)};
  return figure;
}

}  // namespace headscope
