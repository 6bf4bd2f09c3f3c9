// Two runs side by side.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "figures/script.h"
#include "plasticity/plasticity_figures.h"

namespace headscope {
namespace {

constexpr std::size_t most_names = 8;

// A head with the ends of the interval of its difference; `value` is that difference.
struct Pair : HeadValue {
  double one = missing, two = missing;
  bool significant = false;
};

std::vector<Pair> pairs_of(const Table& table) {
  check_heads(table);
  const auto &layer = table.integers("layer"), &q_head = table.integers("q_head");
  const Numbers one = table.numbers("ap_1"), two = table.numbers("ap_2"), difference = table.numbers("difference");
  const Numbers low = table.numbers("low"), high = table.numbers("high"), significant = table.numbers("significant");
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    pairs.push_back({{layer[i], q_head[i], two[i] - one[i], low[i], high[i]}, one[i], two[i], significant[i] == 1});
    if (std::fabs(difference[i] - pairs[i].value) > 1e-6 && std::isfinite(difference[i]) &&
        std::isfinite(pairs[i].value))
      fail_input("comparison of {}: difference is {}, expected ap_2 - ap_1 = {}", head_name(pairs[i]), difference[i],
                 pairs[i].value);
  }
  return pairs;
}

// The heads that differ, or the others: a table, points and the bars of their intervals.
void add_points(Figure& figure, std::vector<Pair> pairs, bool significant) {
  std::erase_if(pairs, [&](const Pair& pair) { return pair.significant != significant; });
  if (pairs.empty()) return;
  const auto low = [](const Pair& pair) { return pair.one + pair.low; };
  const auto high = [](const Pair& pair) { return pair.one + pair.high; };
  const std::string data = significant ? "different" : "same";
  const Colour colour = significant ? category(1) : muted;
  figure.data.push_back({data, table_of(pairs, "name", head_name, "layer", &Pair::layer, "q_head", &Pair::q_head,
                                        "ap_1", &Pair::one, "ap_2", &Pair::two, "bar_low", low, "bar_high", high)});
  auto& marks = figure.panels[0].marks;
  marks.push_back(Mark::segment(data, "ap_1", "bar_low", "bar_high").coloured(colour).wide(0.5));
  marks.push_back(Mark::points(data, "ap_1", "ap_2")
                      .coloured(colour)
                      .named(significant ? "different (FDR 5 %)" : "no difference found"));
}

// Names for the significant heads that differ most.
std::vector<Label> names_of(std::vector<Pair> pairs) {
  std::erase_if(pairs, [](const Pair& pair) { return !pair.significant; });
  std::ranges::stable_sort(pairs, std::greater<>(), [](const Pair& pair) { return std::abs(pair.value); });
  pairs.resize(std::min(pairs.size(), most_names));
  std::vector<Label> labels;
  for (const Pair& pair : pairs)
    labels.push_back({.text = {head_name(pair)}, .place = Label::near, .x = pair.one, .y = pair.two});
  return labels;
}

Figure scatter(const PlasticityComparison& comparison, std::vector<Pair> pairs) {
  std::erase_if(pairs, [](const Pair& pair) { return !std::isfinite(pair.one) || !std::isfinite(pair.two); });
  const auto axis = [](const std::string& run) {
    return Axis{.kind = Axis::share, .label = {"plasticity, " + shorten(run, 34)}, .padding = 0.03};
  };
  Figure figure{"plasticity_comparison", "Plasticity of each head in two runs"};
  figure.panels = {{.x = axis(comparison.name_1),
                    .y = axis(comparison.name_2),
                    .references = {{.colour = muted, .diagonal = true}},
                    .labels = names_of(pairs)}};
  add_points(figure, pairs, false);
  add_points(figure, pairs, true);
  figure.kinds = {Mark::line("", "", "").coloured(muted).wide(0.8).dashed().named("equal in both")};
  if (std::ranges::any_of(pairs, [](const Pair& pair) { return std::isfinite(pair.low); }))
    figure.kinds.push_back(Mark::segment("", "", "low", "high").wide(0.5).named("95 % interval of the difference"));
  figure.grid.aspect = 1;
  return figure;
}

}  // namespace

std::vector<Figure> comparison_figures(const PlasticityComparison& comparison) {
  const std::vector<Pair> pairs = pairs_of(comparison.table);
  // Differences below 0.03 are not worth a colour scale of their own.
  const Axis axis{.kind = Axis::around, .label = {"difference", "in plasticity"}, .least = 0.03};
  return {scatter(comparison, pairs),
          head_map({"plasticity_difference", "Difference",
                    fmt::format("{} − {}", shorten(comparison.name_2, 19), shorten(comparison.name_1, 19))},
                   {pairs.begin(), pairs.end()}, {ColourScale::diverging, axis})};
}

}  // namespace headscope
