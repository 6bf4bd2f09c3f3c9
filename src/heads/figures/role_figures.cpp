#include "heads/figures/role_figures.h"

#include "core/error.h"
#include "figures/figure_parts.h"
#include "figures/panels.h"
#include "figures/table_limits.h"
#include "figures/token_axis.h"
#include "heads/figures/tracking_series.h"

namespace headscope {
namespace {

// Roles have the colours of the categories; the last one, of heads without a clear role, stands back.
Script role_colour(std::size_t role, std::size_t roles) {
  return role + 1 == roles ? Script("lc rgb absent") : format_script("lt {}", role + 1);
}

// As much of a role's name as a legend has room for.
std::string legend_name(const std::string& role) {
  return shorten(role, 48);
}

// As many rows as the names need in one column of a journal: gnuplot makes all columns as wide as the widest.
int legend_rows(const std::vector<std::string>& names, double room) {
  if (names.size() > most_roles) fail_input("{} roles; a legend shows {}", names.size(), most_roles);
  std::size_t longest = 1;
  for (const std::string& name : names) longest = std::max(longest, name.size());
  const auto columns = std::max(1, static_cast<int>(room / (7.4 * static_cast<double>(longest) + 30)));
  return (static_cast<int>(names.size()) + columns - 1) / columns;
}

// Of the roles that some head has.
std::vector<std::string> names_with_counts(const RoleMapData& data) {
  std::vector<std::string> names;
  for (std::size_t role = 0; role < data.roles.size(); ++role)
    if (const auto count = std::ranges::count(data.role_of, role); count > 0)
      names.push_back(fmt::format("{} ({})", legend_name(data.roles[role]), count));
  return names;
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
  const std::string name = "role_map";
  const std::string_view what = "Roles of heads";
  HEADSCOPE_CHECK(data.role_of.size() == data.layers * data.heads && data.score_of.size() == data.role_of.size(),
                  "{} roles and {} scores of {} x {} heads", data.role_of.size(), data.score_of.size(), data.layers,
                  data.heads);
  if (data.role_of.empty()) return empty_figure(name, what, data.title);
  Figure figure{.name = name, .width = data.layers <= 40 ? 480 : 960};
  const auto names = names_with_counts(data);
  Margins around{.left = 50, .right = 16};
  const int rows = legend_rows(names, figure.width - around.left);
  around.top = 40 + 15 * rows;
  // Square tiles where the counts allow it; the filled part is always square.
  const double tile = std::min((figure.width - around.left - around.right) / static_cast<double>(data.layers),
                               data.layers < 8 ? 72.0 : 60.0);
  around.right = figure.width - around.left - tile * static_cast<double>(data.layers);
  const double height = std::clamp(tile * static_cast<double>(data.heads), 96.0, 720.0);  // the label needs 96
  figure.height = static_cast<int>(std::lround((height + around.top + around.bottom) / 3)) * 3;
  const double aspect = height / static_cast<double>(data.heads) / tile;  // of a tile: height over width

  std::vector<Script> behind, filled, keys;
  for (std::size_t role = 0; role < data.roles.size(); ++role) {
    if (!std::ranges::count(data.role_of, role)) continue;
    const Script block = format_script("role{}", role), colour = role_colour(role, data.roles.size());
    figure.data.push_back({block.text(), tiles_of(data, role)});
    behind.push_back(format_script(
        "{} using \"layer\":\"head\":(0.5):(0.5) with boxxyerror {} lw 0.5 fs transparent solid 0.25 border "
        "rgb paper notitle",
        block, colour));
    filled.push_back(format_script(
        "{} using \"layer\":\"head\":(column(\"half\")*{:.6g}):(column(\"half\")*{:.6g}) with boxxyerror {} fs "
        "solid noborder notitle",
        block, std::min(aspect, 1.0), std::min(1 / aspect, 1.0), colour));
    keys.push_back(
        format_script("keyentry with boxes {} fs solid noborder title {}", colour, gnuplot_text(names[keys.size()])));
  }
  figure.setup = frame_commands(figure, around, what, data.title) + legend_in_rows(figure, around, rows) +
                 "unset grid; unset border\nset tics scale 0\n" + axis_labels(figure, "'layer'", "'query head'") +
                 format_script(
                     "set label 5 'filled area: how clear' at screen {:.4f},{:.4f} right textcolor rgb ink font "
                     "',12'\n",
                     1 - 16.0 / figure.width, 11.0 / figure.height) +
                 axis_commands("x", integer_axis(0, static_cast<std::int64_t>(data.layers) - 1, 16)) +
                 axis_commands("y", integer_axis(0, static_cast<std::int64_t>(data.heads) - 1, 8));
  behind.insert(behind.end(), filled.begin(), filled.end());
  behind.insert(behind.end(), keys.begin(), keys.end());
  figure.plot = plot_command(behind);
  return figure;
}

Figure role_timeline_figure(const RoleTimelineData& data) {
  const std::string name = "role_timeline";
  const std::string_view what = "Roles over training";
  HEADSCOPE_CHECK(data.share.size() == data.roles.size(), "{} shares of {} roles", data.share.size(),
                  data.roles.size());
  if (data.tokens.empty() || data.roles.empty()) return empty_figure(name, what, data.title);
  const auto places = evenly_spaced(data.tokens.size(), most_moments);
  const auto thinned = [&](const auto& values) {
    std::decay_t<decltype(values)> chosen;
    for (const std::size_t place : places) chosen.push_back(values.at(place));
    return chosen;
  };
  const Integers tokens = thinned(data.tokens);
  Table table("roles");
  table.add("tokens", tokens);
  for (std::size_t role = 0; role < data.roles.size(); ++role)
    table.add(fmt::format("role{}", role), thinned(data.share[role]));

  TokenAxis x = token_axis({tokens.begin(), tokens.end()});
  const auto [first, last] = std::ranges::minmax(tokens);
  if (first < last) x.axis.high = static_cast<double>(last);  // areas end at the frame
  std::vector<Script> areas, keys;
  std::vector<std::string> names;
  for (std::size_t role = 0; role < data.roles.size(); ++role) {
    if (!(finite_mean(data.share[role]) > 0)) continue;
    const Script colour = role_colour(role, data.roles.size());
    const Script below = role == 0 ? Script("(0)") : format_script("(sum [k=2:{}] column(k))", role + 1);
    const Script above = format_script("(sum [k=2:{}] column(k))", role + 2);
    areas.push_back(tokens.size() > 1
                        ? format_script("roles using \"tokens\":{}:{} with filledcurves {} fs solid "
                                        "border rgb paper notitle",
                                        below, above, colour)
                        : format_script("roles using \"tokens\":{}:({:.10g}):({:.10g}):{}:{} with boxxyerror {} "
                                        "fs solid border rgb paper notitle",
                                        above, x.axis.low, x.axis.high, below, above, colour));
    names.push_back(legend_name(data.roles[role]));
    keys.push_back(
        format_script("keyentry with boxes {} fs solid noborder title {}", colour, gnuplot_text(names.back())));
  }
  if (areas.empty()) return empty_figure(name, what, data.title);
  Figure figure{.name = name, .data = {{"roles", table}}};
  Margins around{.left = 60, .right = 16};
  const int rows = legend_rows(names, figure.width - around.left);
  around.top = 36 + 15 * rows;
  figure.height = static_cast<int>(216 + around.top + around.bottom) / 3 * 3;
  figure.setup = frame_commands(figure, around, what, data.title) + legend_in_rows(figure, around, rows) +
                 axis_labels(figure, token_axis_label(x), "'share of heads'") + token_axis_commands(x) +
                 axis_commands("y", Axis{}) + "unset grid\n";
  areas.insert(areas.end(), keys.begin(), keys.end());
  figure.plot = plot_command(areas);
  return figure;
}

}  // namespace headscope
