#include "plasticity/comparison_figures.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "figures/columns.h"
#include "figures/script.h"
#include "figures/table_limits.h"
#include "plasticity/head_figures.h"

namespace headscope {
namespace {

constexpr std::size_t most_names = 8;

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
  const Numbers one = table.numbers("ap_1"), two = table.numbers("ap_2"), difference = table.numbers("difference");
  const Numbers low = table.numbers("low"), high = table.numbers("high"), significant = table.numbers("significant");
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

// The heads that differ, or the others: a table, points and the bars of their
// intervals.
void add_points(Figure& figure, const std::vector<Pair>& pairs, bool significant) {
  std::vector<Pair> shown = pairs;
  std::erase_if(shown, [&](const Pair& pair) { return pair.significant != significant; });
  if (shown.empty()) return;
  const auto name = [](const Pair& pair) { return head_name(pair.layer, pair.q_head); };
  const auto low = [](const Pair& pair) { return pair.one + pair.low; };
  const auto high = [](const Pair& pair) { return pair.one + pair.high; };
  Table table = table_of(shown, "name", name, "layer", &Pair::layer, "q_head", &Pair::q_head, "ap_1", &Pair::one,
                         "ap_2", &Pair::two, "bar_low", low, "bar_high", high);
  const std::string data = significant ? "different" : "same";
  const Colour colour = significant ? category(1) : muted;
  const double size = (pairs.size() <= 100 ? 0.5 : 0.35) * (significant ? 1.3 : 1);
  auto& marks = figure.panels[0].marks;
  if (finite_count(table.numbers("bar_low")) > 0)
    marks.push_back(Mark::segment(data, "ap_1", "bar_low", "bar_high").coloured(colour).wide(0.5));
  marks.push_back(Mark::points(data, "ap_1", "ap_2")
                      .coloured(colour)
                      .sized(size)
                      .named(significant ? "different (FDR 5 %)" : "no difference found"));
  figure.data.push_back({data, std::move(table)});
}

// Names for the significant heads that differ most.
std::vector<Label> names_of(std::vector<Pair> pairs) {
  std::erase_if(pairs, [](const Pair& pair) { return !pair.significant; });
  std::ranges::stable_sort(pairs, std::greater<>(), [](const Pair& pair) { return std::abs(pair.difference()); });
  pairs.resize(std::min(pairs.size(), most_names));
  std::vector<Label> labels;
  for (const Pair& pair : pairs)
    labels.push_back(
        {.text = {head_name(pair.layer, pair.q_head)}, .place = Label::near, .x = pair.one, .y = pair.two});
  return labels;
}

Figure scatter(const PlasticityComparison& comparison, const std::vector<Pair>& pairs) {
  Figure figure{"plasticity_comparison", "Plasticity of each head in two runs"};
  if (pairs.empty()) return empty_figure(figure.name, figure.title, "");
  std::vector<double> shown;
  for (const Pair& pair : pairs)
    for (const double value : {pair.one, pair.two, pair.one + pair.low, pair.one + pair.high})
      shown.push_back(std::clamp(value, 0.0, 1.0));  // an interval may reach beyond; the values do not
  const Axis axis = padded(unit_axis(shown), 0.03);
  const auto label = [](const std::string& run) { return "plasticity, " + shorten(run, 34); };
  figure.panels = {{.x = labelled(axis, {label(comparison.name_1)}),
                    .y = labelled(axis, {label(comparison.name_2)}),
                    .references = {{.colour = muted, .diagonal = true}},
                    .labels = names_of(pairs)}};
  add_points(figure, pairs, false);
  add_points(figure, pairs, true);
  figure.grid.aspect = 1;
  return figure;
}

Figure difference_map(const PlasticityComparison& comparison) {
  const Numbers one = comparison.table.numbers("ap_1"), two = comparison.table.numbers("ap_2");
  std::vector<HeadValue> heads;
  std::vector<double> differences;
  for (std::size_t i = 0; i < comparison.table.rows(); ++i) {
    differences.push_back(two[i] - one[i]);
    heads.push_back({.layer = comparison.table.integers("layer")[i],
                     .q_head = comparison.table.integers("q_head")[i],
                     .value = differences.back()});
  }
  // Differences below 0.03 are not worth a colour scale of their own.
  const Axis axis = labelled(symmetric_axis(differences, 0, 0.03), {"difference", "in plasticity"});
  return head_map({"plasticity_difference", "Difference",
                   fmt::format("{} − {}", shorten(comparison.name_2, 19), shorten(comparison.name_1, 19))},
                  heads, {ColourScale::diverging, axis});
}

}  // namespace

std::vector<Figure> comparison_figures(const PlasticityComparison& comparison) {
  check_heads(comparison.table);
  return {scatter(comparison, pairs_of(comparison.table)), difference_map(comparison)};
}

std::vector<std::filesystem::path> draw_comparison_figure(const PlasticityComparison& comparison,
                                                          const std::filesystem::path& folder, const Theme& theme) {
  return draw(comparison_figures(comparison), folder, theme).files;
}

}  // namespace headscope
