#include "plasticity/comparison_figures.h"

#include "core/error.h"
#include "figures/figure_parts.h"
#include "figures/table_limits.h"
#include "plasticity/head_figures.h"

namespace headscope {
namespace {

struct Pair {
  std::int64_t layer, q_head;
  double one, two, low, high;
  bool significant;
  [[nodiscard]] double difference() const { return two - one; }
};

// Heads that have a value in both runs.
std::vector<Pair> pairs_of(const Table& table) {
  const auto& layer = table.integers("layer");
  const auto& q_head = table.integers("q_head");
  const Numbers one = table.numbers("ap_1");
  const Numbers two = table.numbers("ap_2");
  const Numbers difference = table.numbers("difference");
  const Numbers low = table.numbers("low");
  const Numbers high = table.numbers("high");
  const Numbers significant = table.numbers("significant");
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    if (!std::isfinite(one[i]) || !std::isfinite(two[i])) continue;
    if (std::isfinite(difference[i]) && std::abs(difference[i] - (two[i] - one[i])) > 1e-6)
      fail_input("comparison of {}: difference is {}, expected ap_2 - ap_1 = {}", head_name(layer[i], q_head[i]),
                 difference[i], two[i] - one[i]);
    pairs.push_back({layer[i], q_head[i], one[i], two[i], low[i], high[i], significant[i] == 1});
  }
  return pairs;
}

struct Box {
  double left, right, bottom, top;
  [[nodiscard]] bool meets(const Box& other) const {
    return left < other.right && other.left < right && bottom < other.top && other.bottom < top;
  }
};

struct Name {
  double x, y;  // centre, in units of the plot
  const Pair* pair;
};

// Names for the significant heads that differ most, each right, left, above or below its point, where it meets the
// fewest other points and no other name; a head that finds no such place stays without.
std::vector<Name> place_names(const std::vector<Pair>& pairs, const Axis& axis, double side, std::size_t limit) {
  std::vector<const Pair*> wanted;
  for (const Pair& pair : pairs)
    if (pair.significant) wanted.push_back(&pair);
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const Pair* a, const Pair* b) { return std::abs(a->difference()) > std::abs(b->difference()); });
  wanted.resize(std::min(wanted.size(), limit));
  const double scale = side / (axis.high - axis.low);
  const auto place = [&](double value) { return (value - axis.low) * scale; };
  std::vector<Box> taken;
  std::vector<Name> names;
  for (const Pair* pair : wanted) {
    const double half_width = 3.4 * static_cast<double>(head_name(pair->layer, pair->q_head).size()) + 1;
    const double half_height = 6.5;
    std::optional<Name> best;
    std::size_t fewest = pairs.size() + 1;
    const double away = half_width + 5;
    for (const auto& [dx, dy] : {std::pair{away, 0.0},
                                 {-away, 0.0},
                                 {0.0, 11.0},
                                 {0.0, -11.0},
                                 {away, 9.0},
                                 {-away, 9.0},
                                 {away, -9.0},
                                 {-away, -9.0}}) {
      const double x = place(pair->one) + dx;
      const double y = place(pair->two) + dy;
      const Box box{x - half_width, x + half_width, y - half_height, y + half_height};
      if (box.left < 0 || box.right > side || box.bottom < 0 || box.top > side) continue;
      if (std::any_of(taken.begin(), taken.end(), [&](const Box& other) { return box.meets(other); })) continue;
      std::size_t met = 0;
      for (const Pair& other : pairs) {
        const double bottom = std::isfinite(other.low) ? place(other.one + other.low) : place(other.two) - 2;
        const double top = std::isfinite(other.high) ? place(other.one + other.high) : place(other.two) + 2;
        met += box.meets({place(other.one) - 2, place(other.one) + 2, bottom, top}) ? 1 : 0;
      }
      if (met < fewest) {
        fewest = met;
        best = Name{x, y, pair};
      }
    }
    if (!best) continue;
    names.push_back(*best);
    taken.push_back({best->x - half_width, best->x + half_width, best->y - half_height, best->y + half_height});
  }
  return names;
}

Table point_table(const std::vector<Pair>& pairs, bool significant) {
  Integers layer, q_head;
  Numbers one, two, low, high;
  Texts name;
  for (const Pair& pair : pairs) {
    if (pair.significant != significant) continue;
    name.push_back(head_name(pair.layer, pair.q_head));
    layer.push_back(pair.layer);
    q_head.push_back(pair.q_head);
    one.push_back(pair.one);
    two.push_back(pair.two);
    low.push_back(pair.one + pair.low);
    high.push_back(pair.one + pair.high);
  }
  Table table("points");
  table.add("name", name).add("layer", layer).add("q_head", q_head).add("ap_1", one).add("ap_2", two);
  return table.add("bar_low", low).add("bar_high", high);
}

Script point_clauses(const Script& data, const Script& colour, double size, const Script& legend, bool bars) {
  Script text;
  if (bars)
    text = format_script(
        "{0} using \"ap_1\":\"bar_low\":(0):(column(\"bar_high\")-column(\"bar_low\")) with vectors nohead lc rgb {1} "
        "lw 0.5 "
        "notitle, \\\n     ",
        data, colour);
  return text + format_script("{} using \"ap_1\":\"ap_2\" with points pt 7 ps {} lc rgb {} title {}", data, size,
                              colour, legend);
}

bool has_bars(const Table& points) {
  const Numbers low = points.numbers("bar_low");
  return std::any_of(low.begin(), low.end(), [](double value) { return std::isfinite(value); });
}

Figure scatter(const PlasticityComparison& comparison, const std::vector<Pair>& pairs) {
  const std::string name = "plasticity_comparison";
  const std::string_view what = "Plasticity of each head in two runs";
  if (pairs.empty()) return empty_figure(name, what, "");
  std::vector<double> shown;
  for (const Pair& pair : pairs)
    for (const double value : {pair.one, pair.two, pair.one + pair.low, pair.one + pair.high})
      shown.push_back(std::clamp(value, 0.0, 1.0));  // an interval may reach beyond; the values do not
  const Axis axis = padded(unit_axis(shown), 0.03);
  const double side = 384;
  const Margins around{.left = 66, .right = 30, .top = 50, .bottom = 48};
  Figure figure{.name = name};
  figure.height = static_cast<int>(side + around.top + around.bottom);

  Table same = point_table(pairs, false);
  Table different = point_table(pairs, true);
  const double size = pairs.size() <= 100 ? 0.5 : 0.35;
  std::vector<Script> clauses = {"x with lines lc rgb muted dt 2 lw 1 notitle"};
  if (same.rows() > 0) {
    clauses.push_back(point_clauses("same", "muted", size, "'no difference found'", has_bars(same)));
    figure.data.push_back({"same", std::move(same)});
  }
  if (different.rows() > 0) {
    clauses.push_back(point_clauses("different", "accent2", size * 1.3, "'different (FDR 5 %)'", has_bars(different)));
    figure.data.push_back({"different", std::move(different)});
  }
  const auto names = place_names(pairs, axis, side, 8);
  if (!names.empty()) {
    Numbers x, y;
    Texts text;
    for (const Name& one : names) {
      x.push_back(axis.low + one.x * (axis.high - axis.low) / side);
      y.push_back(axis.low + one.y * (axis.high - axis.low) / side);
      text.push_back(head_name(one.pair->layer, one.pair->q_head));
    }
    Table table("names");
    table.add("x", x).add("y", y).add("name", text);
    figure.data.push_back({"names", std::move(table)});
    clauses.emplace_back("names using \"x\":\"y\":\"name\" with labels center textcolor rgb ink font ',11' notitle");
  }
  const auto axis_label = [](const std::string& run) { return gnuplot_text("plasticity, " + shorten(run, 34)); };
  figure.setup = frame_commands(figure, around, what, "") + legend_above(figure, around) +
                 axis_labels(figure, axis_label(comparison.name_1), axis_label(comparison.name_2)) +
                 axis_commands("x", axis) + axis_commands("y", axis);
  figure.plot = plot_command(clauses);
  return figure;
}

Figure difference_map(const PlasticityComparison& comparison, const Theme& theme) {
  const Numbers one = comparison.table.numbers("ap_1");
  const Numbers two = comparison.table.numbers("ap_2");
  std::vector<HeadValue> heads;
  double largest = 0.03;  // smaller differences are not worth a colour scale of their own
  for (std::size_t i = 0; i < comparison.table.rows(); ++i) {
    heads.push_back({.layer = comparison.table.integers("layer")[i],
                     .q_head = comparison.table.integers("q_head")[i],
                     .value = two[i] - one[i]});
    if (std::abs(heads.back().value) <= 1e100) largest = std::max(largest, std::abs(heads.back().value));
  }
  const double step = round_step(largest, 3);
  const double end = std::ceil(largest / step - 1e-9) * step;
  return head_map("plasticity_difference", "Difference",
                  fmt::format("{} − {}", shorten(comparison.name_2, 19), shorten(comparison.name_1, 19)), heads,
                  {.low = -end, .high = end, .first_tic = -end, .last_tic = end, .step = step},
                  "\"difference\\nin plasticity\"", theme.diverging);
}

}  // namespace

std::vector<Figure> comparison_figures(const PlasticityComparison& comparison, const Theme& theme) {
  check_heads(comparison.table);
  return {scatter(comparison, pairs_of(comparison.table)), difference_map(comparison, theme)};
}

std::vector<std::filesystem::path> draw_comparison_figure(const PlasticityComparison& comparison,
                                                          const std::filesystem::path& folder, const Theme& theme) {
  return draw(comparison_figures(comparison, theme), folder, theme).files;
}

}  // namespace headscope
