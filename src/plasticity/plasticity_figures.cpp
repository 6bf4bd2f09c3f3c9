#include "plasticity/plasticity_figures.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "core/error.h"

namespace headscope {
namespace {

constexpr std::int64_t most_tiles = 65536;          // layers times heads of a map
constexpr std::size_t most_curve_points = 1 << 22;  // layers times places on the x axis

const std::vector<std::string> plasticity_label = {"plasticity", "(0 fixed, 1 coin flip)"};
const Axis layer_axis = {.kind = Axis::integers, .label = {"layer"}, .grid = false};
const ColourScale by_plasticity = {ColourScale::sequential, {.kind = Axis::share, .label = plasticity_label}};
const ColourScale by_layer = {ColourScale::ordered, {.kind = Axis::integers, .label = {"layer"}}};

Axis plasticity_axis(double padding) {
  return {.kind = Axis::share, .label = plasticity_label, .padding = padding};
}

std::vector<HeadValue> finite(std::vector<HeadValue> heads) {
  std::erase_if(heads, [](const HeadValue& head) { return !std::isfinite(head.value); });
  return heads;
}

// Bit reversal (van der Corput): spreads 0 ... count - 1 evenly over -0.5 ... 0.5, without the slope that their order
// would draw.
double spread(std::int64_t index, std::int64_t count) {
  double place = -0.5;
  double half = 0.5;
  for (; count > 1; index /= 2, count = (count + 1) / 2, half /= 2) place += half * static_cast<double>(index % 2);
  return place + half;
}

// Every head as a point beside its layer, with median and quartiles of the layer.
Figure layer_distribution(Figure figure, const std::vector<HeadValue>& heads, Axis y) {
  const auto present = finite(heads);
  std::int64_t first = most_heads, last = 0;
  for (const HeadValue& head : present) {
    first = std::min(first, head.q_head);
    last = std::max(last, head.q_head);
  }
  const auto beside = [&](const HeadValue& head) {
    return static_cast<double>(head.layer) + 0.6 * spread(head.q_head - first, last - first + 1);
  };
  const auto middle_half = [](double LayerSpread::*end) {
    return
        [end](const LayerSpread& layer) { return layer.n_heads < 4 ? missing : layer.*end; };  // of fewer: no quarters
  };
  figure.data = {{"points", table_of(present, "layer", &HeadValue::layer, "q_head", &HeadValue::q_head, "x", beside,
                                     "value", &HeadValue::value)},
                 {"layers", table_of(spread_by_layer(present), "layer", &LayerSpread::layer, "n_heads",
                                     &LayerSpread::n_heads, "q25", middle_half(&LayerSpread::low), "median",
                                     &LayerSpread::median, "q75", middle_half(&LayerSpread::high))}};
  figure.panels = {{.x = layer_axis, .y = std::move(y)}};
  figure.panels[0].marks = {Mark::box("layers", "layer", "q25", "q75")
                                .coloured(category(0))
                                .faded(0.22)
                                .spanning(0.76)
                                .named("middle 50 % of heads"),
                            Mark::points("points", "x", "value").coloured(muted).named("head"),
                            Mark::segment("layers", "layer", "median", "median")
                                .coloured(category(1))
                                .wide(1.6)
                                .shifted(-0.38, 0.38)
                                .named("median")};
  return figure;
}

// "highest: L3H5, L0H1"
std::string names_of(std::span<const HeadValue> ranked, std::string text) {
  for (const HeadValue& head : ranked) text += fmt::format("{} {}", text.ends_with("est") ? ":" : ",", head_name(head));
  return text;
}

// Heads from the largest value to the smallest, coloured by layer, with intervals where known. Up to 24 heads are all
// named; of more, the first and last five are.
Figure ranked_heads(Figure figure, const std::vector<HeadValue>& heads) {
  auto ranked = finite(heads);
  std::ranges::stable_sort(ranked, std::greater<>(), &HeadValue::value);
  const bool all_named = ranked.size() <= 24;
  Axis x{.kind = Axis::integers, .label = {"head, by rank"}, .padding = 0.01, .grid = false, .upright = all_named};
  if (all_named) {
    x.label = {"head"};
    for (const HeadValue& head : ranked) x.tics.push_back({static_cast<double>(x.tics.size() + 1), head_name(head)});
  } else if (ranked.front().value != ranked.back().value) {
    const std::span<const HeadValue> all(ranked);
    figure.notes = {names_of(all.first(5), "highest"), names_of(all.last(5), "lowest")};
  }
  const auto rank = [&](const HeadValue& head) { return std::int64_t{&head - ranked.data() + 1}; };
  figure.data = {{"heads", table_of(ranked, "rank", rank, "name", head_name, "layer", &HeadValue::layer, "q_head",
                                    &HeadValue::q_head, "value", &HeadValue::value, "low", &HeadValue::low, "high",
                                    &HeadValue::high)}};
  figure.panels = {{.x = std::move(x), .y = plasticity_axis(0.03)}};
  figure.panels[0].marks = {
      Mark::segment("heads", "rank", "low", "high").coloured(muted).wide(all_named ? 0.8 : 0.4).named("95 % interval"),
      Mark::points("heads", "rank", "value").coloured(by_column("layer"))};
  figure.colours = by_layer;
  return figure;
}

// The cells with a value and those without: tables, and a panel for each head, whose cells follow each other. As in an
// attention matrix, queries go down and keys to the right.
Figure cells_figure(Figure figure, const std::vector<BucketCell>& cells) {
  std::map<std::int64_t, Panel> of_head;
  for (const bool with_value : {true, false}) {
    std::vector<BucketCell> shown = cells;
    std::erase_if(shown, [&](const BucketCell& cell) { return std::isfinite(cell.value) != with_value; });
    if (shown.empty()) continue;
    const std::string name = with_value ? "cells" : "empty";
    Mark mark = Mark::cell(name, "k_bucket", "q_bucket");
    mark = with_value ? mark.coloured(by_column("value"))
                      : mark.coloured({.role = Colour::absent})
                            .changed(&Mark::struck, true)
                            .named("no two keys of a text: nothing to compare");
    for (std::size_t i = 0; i < shown.size(); ++i) {
      auto& marks = of_head[shown[i].q_head].marks;
      if (marks.empty() || marks.back().data != name) marks.push_back(mark.of_rows(i, i));
      marks.back().rows->second = i;
    }
    figure.data.push_back({name, table_of(shown, "layer", &BucketCell::layer, "q_head", &BucketCell::q_head, "q_bucket",
                                          &BucketCell::q_bucket, "k_bucket", &BucketCell::k_bucket, "n_heads",
                                          &BucketCell::n_heads, "value", &BucketCell::value)});
  }
  for (auto& [head, panel] : of_head) {
    panel.title = fmt::format("H{}", head);
    panel.x = {.kind = Axis::integers, .label = {"key bucket"}};
    panel.y = {.kind = Axis::integers, .label = {"query bucket"}, .reversed = true};
    figure.panels.push_back(std::move(panel));
  }
  figure.colours = by_plasticity;
  return figure;
}

// Query bucket x key bucket, mean over heads. Up to ten buckets, of which keys are never after queries, values are
// written into the cells.
Figure bucket_heatmap(Figure figure, const std::vector<BucketCell>& cells) {
  const auto means = mean_over_heads(cells);
  figure = cells_figure(std::move(figure), means);
  Extent values;
  for (const BucketCell& cell : means) values.add(cell.value);
  for (Panel& panel : figure.panels) {
    panel.title.clear();
    for (const BucketCell& cell : means)
      if (std::isfinite(cell.value) && means.size() <= 64)
        panel.labels.push_back({.text = {fmt::format("{:.{}f}", cell.value, values.high - values.low < 0.1 ? 3 : 2)},
                                .x = static_cast<double>(cell.k_bucket),
                                .y = static_cast<double>(cell.q_bucket),
                                .colour = {.role = Colour::readable, .value = cell.value}});
  }
  return figure;
}

// A page for each layer, bucket_heatmap_l00 ..., with a panel for each head; one colour scale for all pages.
void add_pages(std::vector<Figure>& figures, const std::vector<BucketCell>& cells, const std::string& subject) {
  std::map<std::int64_t, std::vector<BucketCell>> layers;
  Extent values;
  for (const BucketCell& cell : cells) {
    layers[cell.layer].push_back(cell);
    values.add(cell.value);
  }
  for (auto& [layer, of_layer] : layers) {
    std::ranges::stable_sort(of_layer, {}, &BucketCell::q_head);
    Figure page =
        cells_figure({fmt::format("bucket_heatmap_l{:02}", layer), fmt::format("Layer {}", layer), subject}, of_layer);
    page.colours->axis.include = values;
    const auto root = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(page.panels.size()))));
    const double side = root == 1 ? 260 : root == 2 ? 150 : 96;
    page.grid = {.columns = page.panels.size() <= 16 ? root : 8, .width = side, .height = side};
    figures.push_back(std::move(page));
  }
}

// A curve for each layer, one column each: a table of `x` and L0, L1, ... A layer without an item at some place has a
// missing value there.
template <class Item>
Figure layer_curves(Figure figure, const std::vector<Item>& items, const std::string& x, std::int64_t Item::*place,
                    double Item::*value) {
  std::set<std::int64_t> places;
  std::map<std::int64_t, std::map<std::int64_t, double>> curves;
  for (const Item& item : items) {
    places.insert(item.*place);
    curves[item.layer][item.*place] = item.*value;
  }
  if (curves.size() * places.size() > most_curve_points)
    fail_input("{} layers at {} different {}; a figure shows {} points", curves.size(), places.size(), x,
               most_curve_points);
  Table table("layers");
  table.add(x, Integers(places.begin(), places.end()));
  figure.panels.resize(1);
  for (const auto& [layer, curve] : curves) {
    Numbers column;
    for (const std::int64_t at : places) column.push_back(curve.contains(at) ? curve.at(at) : missing);
    const std::string name = fmt::format("L{}", layer);
    table.add(name, std::move(column));
    figure.panels[0].marks.push_back(
        Mark::line("layers", x, name).coloured(by_value(layer)).wide(curves.size() > 8 ? 0.6 : 1));
  }
  figure.data.push_back({"layers", std::move(table)});
  figure.colours = by_layer;
  return figure;
}

// Mean over heads against q_bucket - k_bucket, with the middle half of heads and a line for each layer.
Figure distance_figure(Figure figure, const std::vector<BucketCell>& cells) {
  figure.data = {
      {"overall", table_of(plasticity_by_distance(cells), "distance", &DistanceSummary::distance, "n_heads",
                           &DistanceSummary::n_heads, "mean", &DistanceSummary::mean, "q25", &DistanceSummary::low,
                           "median", &DistanceSummary::median, "q75", &DistanceSummary::high)}};
  figure = layer_curves(std::move(figure), layer_plasticity_by_distance(cells), "distance", &LayerDistance::distance,
                        &LayerDistance::mean);
  Panel& panel = figure.panels[0];
  panel.x = {.kind = Axis::integers, .label = {"query bucket − key bucket"}, .padding = -0.02, .grid = false};
  panel.y = plasticity_axis(0.02);
  const Mark middle_half = Mark::band("overall", "distance", "q25", "q75").coloured(category(0)).faded(0.22);
  panel.marks.insert(panel.marks.begin(), middle_half.named("middle 50 % of heads"));
  panel.marks.push_back(Mark::line("overall", "distance", "mean").wide(2).sized(0.5).named("mean over heads"));
  return figure;
}

// Share of positional information in a head's heaviest components, mean over the heads of each layer, a curve for each
// layer; dashed: all components weigh the same.
Figure component_weights(Figure figure, const PlasticityTables& tables) {
  figure = layer_curves(std::move(figure), cumulative_component_share(tables), "components", &CumulativeShare::count,
                        &CumulativeShare::share);
  Panel& panel = figure.panels[0];
  Table& table = figure.data[0].table;
  Numbers equal;
  for (std::size_t i = 1; i <= table.rows(); ++i)
    equal.push_back(static_cast<double>(i) / static_cast<double>(table.rows()));
  table.add("equal", std::move(equal));
  panel.x = {.kind = Axis::doubling, .label = {"heaviest components of the query"}};
  panel.y = {.kind = Axis::share, .label = {"cumulative share"}, .padding = 0.02, .include = {0, 1}};
  panel.marks.push_back(Mark::line("layers", "components", "equal").coloured(muted).dashed().named("equal weights"));
  return figure;
}

}  // namespace

std::string head_name(const HeadValue& head) {
  return fmt::format("L{}H{}", head.layer, head.q_head);
}

Figure head_map(Figure figure, const std::vector<HeadValue>& heads, ColourScale scale) {
  const auto present = finite(heads);
  std::vector<HeadValue> absent;
  if (!heads.empty()) {
    const auto layers = std::ranges::minmax(heads, {}, &HeadValue::layer);
    const auto of_layer = std::ranges::minmax(heads, {}, &HeadValue::q_head);
    const std::int64_t down = of_layer.max.q_head - of_layer.min.q_head + 1;
    const std::int64_t across = layers.max.layer - layers.min.layer + 1;
    if (across * down > most_tiles)
      fail_input("columns 'layer' and 'q_head' span {} layers of {} heads; a map shows {} heads", across, down,
                 most_tiles);
    std::set<std::pair<std::int64_t, std::int64_t>> seen;
    for (const HeadValue& head : present) seen.emplace(head.layer, head.q_head);
    for (std::int64_t layer = layers.min.layer; layer <= layers.max.layer; ++layer)
      for (std::int64_t q_head = of_layer.min.q_head; q_head <= of_layer.max.q_head; ++q_head)
        if (!seen.contains({layer, q_head})) absent.push_back({.layer = layer, .q_head = q_head});
  }
  const auto tiles = [](const std::vector<HeadValue>& shown) {
    return table_of(shown, "x", &HeadValue::layer, "y", &HeadValue::q_head, "value", &HeadValue::value);
  };
  figure.data = {{"tiles", tiles(present)}, {"empty", tiles(absent)}};
  figure.panels = {
      {.x = layer_axis,
       .y = {.kind = Axis::integers, .label = {"query head"}, .reversed = true},
       .marks = {Mark::cell("tiles", "x", "y").coloured(by_column("value")), Mark::cell("empty", "x", "y")
                                                                                 .coloured({.role = Colour::absent})
                                                                                 .named("no value")
                                                                                 .changed(&Mark::struck, true)}}};
  figure.colours = std::move(scale);
  return figure;
}

std::vector<Figure> plasticity_figures(const PlasticityTables& tables, const PlasticityFigureOptions& options) {
  const auto heads = head_plasticity(tables);
  const auto cells = bucket_cells(tables);
  const auto named = [&](const char* name, const char* title) { return Figure{name, title, tables.title}; };
  std::vector<Figure> figures = {
      head_map(named("plasticity_map", "Attention plasticity"), heads, by_plasticity),
      layer_distribution(named("plasticity_by_layer", "Plasticity by layer"), heads, plasticity_axis(0.02)),
      ranked_heads(named("plasticity_ranked", "Heads by plasticity"), heads),
      bucket_heatmap(named("bucket_heatmap", "Plasticity, mean over heads"), cells),
      distance_figure(named("plasticity_distance", "Plasticity by distance"), cells),
      component_weights(named("component_weights", "Positional information"), tables),
      layer_distribution(named("component_concentration", "Components that carry position"),
                         effective_components(tables),
                         {.label = {"effective number"}, .padding = 0.02, .include = {0, 1}}),
  };
  if (tables.checks)
    for (Figure& figure : check_figures(*tables.checks, tables.title)) figures.push_back(std::move(figure));
  if (options.per_head) add_pages(figures, cells, tables.title);
  return figures;
}

}  // namespace headscope
