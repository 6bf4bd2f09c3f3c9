#include "plasticity/head_figures.h"

#include <set>

#include "figures/figure_parts.h"
#include "figures/table_limits.h"

namespace headscope {
namespace {

struct Extent {
  std::int64_t first_layer = 0, last_layer = 0, first_head = 0, last_head = 0;
};

Extent extent_of(const std::vector<HeadValue>& heads) {
  Extent extent{heads[0].layer, heads[0].layer, heads[0].q_head, heads[0].q_head};
  for (const HeadValue& head : heads) {
    extent.first_layer = std::min(extent.first_layer, head.layer);
    extent.last_layer = std::max(extent.last_layer, head.layer);
    extent.first_head = std::min(extent.first_head, head.q_head);
    extent.last_head = std::max(extent.last_head, head.q_head);
  }
  return extent;
}

std::vector<HeadValue> finite(std::vector<HeadValue> heads) {
  std::erase_if(heads, [](const HeadValue& head) { return !std::isfinite(head.value); });
  return heads;
}

Table tiles(const std::vector<HeadValue>& heads) {
  Integers x, y;
  Numbers value;
  for (const HeadValue& head : heads) {
    x.push_back(head.layer);
    y.push_back(head.q_head);
    value.push_back(head.value);
  }
  Table table("tiles");
  table.add("x", x).add("y", y).add("value", value);
  return table;
}

// The heads of the rectangle that have no value or no row.
std::vector<HeadValue> absent_heads(const std::vector<HeadValue>& present, const Extent& extent) {
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for (const HeadValue& head : present) seen.emplace(head.layer, head.q_head);
  std::vector<HeadValue> absent;
  for (std::int64_t layer = extent.first_layer; layer <= extent.last_layer; ++layer)
    for (std::int64_t q_head = extent.first_head; q_head <= extent.last_head; ++q_head)
      if (!seen.contains({layer, q_head})) absent.push_back({.layer = layer, .q_head = q_head});
  return absent;
}

// Bit reversal (van der Corput): spreads 0 ... count - 1 evenly over -0.5 ... 0.5, without the slope that their order
// would draw.
double spread(std::int64_t index, std::int64_t count) {
  double place = -0.5;
  double half = 0.5;
  for (; count > 1; index /= 2, count = (count + 1) / 2, half /= 2) place += half * static_cast<double>(index % 2);
  return place + half;
}

// Names of the first or last few ranked heads, in order of rank: "highest: L3H5, L0H1".
std::string names_of(const std::vector<HeadValue>& ranked, std::size_t from, std::size_t count, std::string_view what) {
  std::string text(what);
  for (std::size_t i = from; i < from + count; ++i)
    text += fmt::format("{} {}", i == from ? ":" : ",", head_name(ranked[i].layer, ranked[i].q_head));
  return text;
}

Table ranked_table(const std::vector<HeadValue>& ranked) {
  Integers rank, layer, q_head;
  Texts name;
  Numbers value, low, high;
  for (const HeadValue& head : ranked) {
    rank.push_back(static_cast<std::int64_t>(rank.size()) + 1);
    name.push_back(head_name(head.layer, head.q_head));
    layer.push_back(head.layer);
    q_head.push_back(head.q_head);
    value.push_back(head.value);
    low.push_back(head.low);
    high.push_back(head.high);
  }
  Table table("heads");
  table.add("rank", rank).add("name", name).add("layer", layer).add("q_head", q_head);
  return table.add("value", value).add("low", low).add("high", high);
}

// Every head named at its tic.
Script named_axis(const std::vector<HeadValue>& ranked) {
  std::vector<Script> tics;
  for (std::size_t i = 0; i < ranked.size(); ++i)
    tics.push_back(format_script("{} {}", gnuplot_text(head_name(ranked[i].layer, ranked[i].q_head)), i + 1));
  return format_script("set xrange [0.4:{}.6]; set xtics rotate by 90 right font ',11' scale 0 ({})\n", ranked.size(),
                       join(tics, ", "));
}

// Ranks at the tics, and the names of the first and last five in the corners that `make_room` keeps free.
Script rank_axis(const std::vector<HeadValue>& ranked) {
  const std::size_t few = 5;
  const Script ranks = axis_commands("x", padded(integer_axis(1, static_cast<std::int64_t>(ranked.size()), 6), 0.01));
  if (ranked.front().value == ranked.back().value) return ranks;  // nobody is first
  return ranks + format_script(
                     "set label 5 {} at graph 0.02,1 left offset 0,-0.6 textcolor rgb ink font ',12'\n"
                     "set label 6 {} at graph 0.98,0 right offset 0,0.6 textcolor rgb ink font ',12'\n",
                     gnuplot_text(names_of(ranked, 0, few, "highest")),
                     gnuplot_text(names_of(ranked, ranked.size() - few, few, "lowest")));
}

// Widens the axis until a line of text, `line` of the axis high, fits above and below all that is shown.
void make_room(Axis& axis, const std::vector<double>& shown, double line) {
  double low = axis.high;
  double high = axis.low;
  for (const double value : shown) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // The text takes its share of the widened range: solve for the ends.
  axis.high = std::max(axis.high, (high - line * axis.low) / (1 - line));
  axis.low = std::min(axis.low, (low - line * axis.high) / (1 - line));
  axis.high = std::max(axis.high, (high - line * axis.low) / (1 - line));
}

}  // namespace

Figure head_map(const std::string& name, std::string_view what, std::string_view whose,
                const std::vector<HeadValue>& heads, const Axis& axis, const Script& bar_label,
                const std::vector<std::string>& colours) {
  if (heads.empty()) return empty_figure(name, what, whose);
  const Extent extent = extent_of(heads);
  check_tiles(extent.last_layer - extent.first_layer + 1, extent.last_head - extent.first_head + 1);
  const auto present = finite(heads);
  const auto absent = absent_heads(present, extent);
  const Margins around{.right = 94};
  Figure figure{.name = name};
  const double tile =
      (figure.width - around.left - around.right) / static_cast<double>(extent.last_layer - extent.first_layer + 1);
  const double n_heads = static_cast<double>(extent.last_head - extent.first_head + 1);
  // Square tiles where the count allows it; at least as high as the colour bar's label is long.
  const double height = std::clamp(std::min(tile, 60.0) * n_heads, 176.0, 380.0);
  figure.height = static_cast<int>(std::lround((height + around.top + around.bottom) / 3)) * 3;
  figure.setup = frame_commands(figure, around, what, whose) + legend_below(figure, around) +
                 "unset grid; unset border\n" + "set tics scale 0\n" + axis_labels(figure, "'layer'", "'query head'") +
                 axis_commands("x", integer_axis(extent.first_layer, extent.last_layer, 10)) +
                 axis_commands("y", integer_axis(extent.first_head, extent.last_head, 8)) +
                 (present.empty() ? Script() : colour_bar(figure, around, axis, bar_label, colours));
  if (!present.empty()) figure.data.push_back({"tiles", tiles(present)});
  if (!absent.empty()) figure.data.push_back({"empty", tiles(absent)});
  figure.plot = plot_command({present.empty() ? Script() : value_tiles("tiles"),
                              absent.empty() ? Script() : absent_tiles("empty", "'no value'")});
  return figure;
}

Figure layer_distribution(const std::string& name, std::string_view what, std::string_view whose,
                          const std::vector<HeadValue>& heads, const Axis& axis, const Script& label) {
  const auto present = finite(heads);
  if (present.empty()) return empty_figure(name, what, whose);
  const Extent extent = extent_of(present);
  const Margins around{.left = 68, .top = 50};
  Figure figure{.name = name};

  Table points("points");
  Integers layer, q_head;
  Numbers x, y;
  for (const HeadValue& head : present) {
    layer.push_back(head.layer);
    q_head.push_back(head.q_head);
    x.push_back(static_cast<double>(head.layer) +
                0.6 * spread(head.q_head - extent.first_head, extent.last_head - extent.first_head + 1));
    y.push_back(head.value);
  }
  points.add("layer", layer).add("q_head", q_head).add("x", x).add("value", y);

  Table layers("layers");
  Integers of_layer, n_heads;
  Numbers low, median, high;
  for (const LayerSpread& one : spread_by_layer(present)) {
    of_layer.push_back(one.layer);
    n_heads.push_back(one.n_heads);
    low.push_back(one.spread.low);
    median.push_back(one.spread.median);
    high.push_back(one.spread.high);
  }
  layers.add("layer", of_layer).add("n_heads", n_heads).add("q25", low).add("median", median).add("q75", high);

  figure.data = {{"points", points}, {"layers", layers}};
  figure.setup = frame_commands(figure, around, what, whose) + legend_above(figure, around) +
                 axis_labels(figure, "'layer'", label) + "set grid noxtics ytics\n" +
                 axis_commands("x", padded(integer_axis(extent.first_layer, extent.last_layer, 10), 0.01)) +
                 axis_commands("y", padded(axis, 0.02));
  const double size = present.size() <= 64 ? 0.45 : present.size() <= 400 ? 0.32 : 0.22;
  figure.plot = plot_command(
      {"layers using \"layer\":\"median\":(column(\"layer\")-0.38):(column(\"layer\")+0.38):\"q25\":\"q75\" with "
       "boxxyerror "
       "fc rgb accent fs transparent solid 0.22 noborder title 'middle 50 %'",
       format_script("points using \"x\":\"value\" with points pt 7 ps {} lc rgb muted title 'head'", size),
       "layers using (column(\"layer\")-0.38):\"median\":(0.76):(0) with vectors nohead lc rgb accent2 lw 1.6 title "
       "'median'"});
  return figure;
}

Figure ranked_heads(const std::string& name, std::string_view what, std::string_view whose,
                    const std::vector<HeadValue>& heads, const Script& label, const Theme& theme) {
  auto ranked = finite(heads);
  if (ranked.empty()) return empty_figure(name, what, whose);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const HeadValue& a, const HeadValue& b) { return a.value > b.value; });
  const Extent extent = extent_of(ranked);
  std::vector<double> shown;
  for (const HeadValue& head : ranked) shown.insert(shown.end(), {head.value, head.low, head.high});
  const bool intervals =
      std::any_of(ranked.begin(), ranked.end(), [](const HeadValue& head) { return std::isfinite(head.low); });
  const bool all_named = ranked.size() <= 24;

  Figure figure{.name = name};
  const Margins around{.left = 68,
                       .right = layer_bar_width(extent.first_layer, extent.last_layer),
                       .top = intervals ? 50.0 : 30.0,
                       .bottom = all_named ? 68.0 : 48.0};
  Axis axis = padded(unit_axis(shown), 0.03);
  if (!all_named) make_room(axis, shown, 20 / (figure.height - around.top - around.bottom));
  figure.setup = frame_commands(figure, around, what, whose) + legend_above(figure, around) +
                 axis_labels(figure, all_named ? Script("'head'") : Script("'head, by rank'"), label) +
                 "set grid noxtics ytics\n" + (all_named ? named_axis(ranked) : rank_axis(ranked)) +
                 axis_commands("y", axis) + layer_colours(figure, around, extent.first_layer, extent.last_layer, theme);
  figure.data.push_back({"heads", ranked_table(ranked)});
  const double size = ranked.size() <= 24 ? 0.6 : ranked.size() <= 400 ? 0.38 : 0.32;
  figure.plot = plot_command(
      {intervals
           ? Script("heads using \"rank\":\"low\":(0):(column(\"high\")-column(\"low\")) with vectors nohead lc rgb "
                    "muted lw 0.4 "
                    "title '95 % interval'")
           : Script(),
       format_script("heads using \"rank\":\"value\":\"layer\" with points pt 7 ps {} lc palette notitle", size)});
  return figure;
}

}  // namespace headscope
