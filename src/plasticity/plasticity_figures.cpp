#include "plasticity/plasticity_figures.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "figures/columns.h"
#include "figures/table_limits.h"
#include "plasticity/head_figures.h"

namespace headscope {
namespace {

const std::vector<std::string> plasticity_label = {"plasticity", "(0 fixed, 1 coin flip)"};

struct Span {
  std::int64_t first = 0, last = 0;
  [[nodiscard]] std::int64_t count() const { return last - first + 1; }
};

// From the smallest to the largest; `items` is not empty.
template <class Item>
Span span_of(const std::vector<Item>& items, std::int64_t Item::*member) {
  const auto [low, high] = std::ranges::minmax(items, {}, member);
  return {low.*member, high.*member};
}

template <class Item>
std::vector<double> values_of(const std::vector<Item>& items) {
  std::vector<double> values;
  for (const Item& item : items) values.push_back(item.value);
  return values;
}

std::vector<HeadValue> finite(std::vector<HeadValue> heads) {
  std::erase_if(heads, [](const HeadValue& head) { return !std::isfinite(head.value); });
  return heads;
}

Axis without_grid(Axis axis) {
  axis.grid = false;
  return axis;
}

Axis layer_axis(Span layers) {
  return without_grid(labelled(integer_axis(layers.first, layers.last, 10), {"layer"}));
}

// Bit reversal (van der Corput): spreads 0 ... count - 1 evenly over -0.5 ...
// 0.5, without the slope that their order would draw.
double spread(std::int64_t index, std::int64_t count) {
  double place = -0.5;
  double half = 0.5;
  for (; count > 1; index /= 2, count = (count + 1) / 2, half /= 2) place += half * static_cast<double>(index % 2);
  return place + half;
}

// Every head as a point beside its layer, with median and quartiles of the
// layer.
Figure layer_distribution(Figure figure, const std::vector<HeadValue>& heads, const Axis& y) {
  const auto present = finite(heads);
  if (present.empty()) return empty_figure(figure.name, figure.title, figure.subject);
  const Span of_heads = span_of(present, &HeadValue::q_head);
  const auto beside = [&](const HeadValue& head) {
    return static_cast<double>(head.layer) + 0.6 * spread(head.q_head - of_heads.first, of_heads.count());
  };
  figure.data = {
      {"points", table_of(present, "layer", &HeadValue::layer, "q_head", &HeadValue::q_head, "x", beside, "value",
                          &HeadValue::value)},
      {"layers", table_of(spread_by_layer(present), "layer", &LayerSpread::layer, "n_heads", &LayerSpread::n_heads,
                          "q25", &LayerSpread::low, "median", &LayerSpread::median, "q75", &LayerSpread::high)}};
  const double size = present.size() <= 64 ? 0.45 : present.size() <= 400 ? 0.32 : 0.22;
  figure.panels = {{.x = padded(layer_axis(span_of(present, &HeadValue::layer)), 0.01), .y = padded(y, 0.02)}};
  figure.panels[0].marks = {
      Mark::box("layers", "layer", "q25", "q75").coloured(category(0)).faded(0.22).spanning(0.76).named("middle 50 %"),
      Mark::points("points", "x", "value").coloured(muted).sized(size).named("head"),
      Mark::segment("layers", "layer", "median", "median")
          .coloured(category(1))
          .wide(1.6)
          .shifted(-0.38, 0.38)
          .named("median")};
  return figure;
}

// "highest: L3H5, L0H1"
std::string names_of(std::span<const HeadValue> ranked, std::string text) {
  for (const HeadValue& head : ranked)
    text += fmt::format("{} {}", text.ends_with("est") ? ":" : ",", head_name(head.layer, head.q_head));
  return text;
}

// Heads from the largest value to the smallest, coloured by layer, with
// intervals where known. Up to 24 heads are all named; of more, the first and
// last five are.
Figure ranked_heads(Figure figure, const std::vector<HeadValue>& heads) {
  auto ranked = finite(heads);
  if (ranked.empty()) return empty_figure(figure.name, figure.title, figure.subject);
  std::ranges::stable_sort(ranked, std::greater<>(), &HeadValue::value);
  const std::span<const HeadValue> all(ranked);
  const bool all_named = ranked.size() <= 24;
  Axis x = padded(integer_axis(1, std::ssize(ranked), 6), 0.01);
  if (all_named) x = {.low = 0.4, .high = static_cast<double>(ranked.size()) + 0.6, .upright = true};
  std::vector<double> shown;
  for (const HeadValue& head : ranked) {
    shown.insert(shown.end(), {head.value, head.low, head.high});
    if (all_named) x.tics.push_back({static_cast<double>(x.tics.size() + 1), head_name(head.layer, head.q_head)});
  }
  const auto rank = [&](const HeadValue& head) { return std::int64_t{&head - ranked.data() + 1}; };
  const auto name = [](const HeadValue& head) { return head_name(head.layer, head.q_head); };
  Table table = table_of(ranked, "rank", rank, "name", name, "layer", &HeadValue::layer, "q_head", &HeadValue::q_head,
                         "value", &HeadValue::value, "low", &HeadValue::low, "high", &HeadValue::high);
  const bool intervals = finite_count(table.numbers("low")) > 0;
  figure.data = {{"heads", std::move(table)}};
  figure.panels = {{.x = without_grid(labelled(x, {all_named ? "head" : "head, by rank"})),
                    .y = labelled(padded(unit_axis(shown), 0.03), plasticity_label)}};
  if (intervals)
    figure.panels[0].marks = {
        Mark::segment("heads", "rank", "low", "high").coloured(muted).wide(0.4).named("95 % interval")};
  const double size = ranked.size() <= 24 ? 0.6 : ranked.size() <= 400 ? 0.38 : 0.32;
  figure.panels[0].marks.push_back(Mark::points("heads", "rank", "value").coloured(by_column("layer")).sized(size));
  if (!all_named && ranked.front().value != ranked.back().value)
    figure.notes = {names_of(all.first(5), "highest"), names_of(all.last(5), "lowest")};
  const Span layers = span_of(ranked, &HeadValue::layer);
  figure.colours = ordered_scale(layers.first, layers.last, "layer");
  return figure;
}

// The cells with a value and those without, as tables and marks. Cells of a
// head follow each other.
struct Cells {
  std::vector<FigureData> data;
  std::map<std::int64_t, std::vector<Mark>> of_head;
};

Cells cells_of(const std::vector<BucketCell>& cells) {
  Cells result;
  for (const bool with_value : {true, false}) {
    std::vector<BucketCell> shown = cells;
    std::erase_if(shown, [&](const BucketCell& cell) { return std::isfinite(cell.value) != with_value; });
    if (shown.empty()) continue;
    const std::string name = with_value ? "cells" : "empty";
    Mark mark = Mark::cell(name, "k_bucket", "q_bucket");
    mark = with_value ? mark.coloured(by_column("value"))
                      : mark.coloured({.role = Colour::absent}).changed(&Mark::struck, true).named("no pairs");
    for (std::size_t i = 0; i < shown.size(); ++i) {
      auto& marks = result.of_head[shown[i].q_head];
      if (marks.empty() || marks.back().data != name) marks.push_back(mark.of_rows(i, i));
      marks.back().rows->second = i;
    }
    result.data.push_back({name, table_of(shown, "layer", &BucketCell::layer, "q_head", &BucketCell::q_head, "q_bucket",
                                          &BucketCell::q_bucket, "k_bucket", &BucketCell::k_bucket, "n_heads",
                                          &BucketCell::n_heads, "value", &BucketCell::value)});
  }
  return result;
}

// As in an attention matrix, queries go down and keys to the right.
Panel bucket_panel(Axis keys, Axis queries, std::vector<Mark> marks) {
  queries.reversed = true;
  return {.x = labelled(std::move(keys), {"key bucket"}),
          .y = labelled(std::move(queries), {"query bucket"}),
          .marks = std::move(marks)};
}

void add_scale(Figure& figure, const std::vector<double>& values) {
  if (finite_count(values) > 0)
    figure.colours = {ColourScale::sequential, labelled(unit_axis(values), plasticity_label)};
}

// Query bucket x key bucket, mean over heads. Up to ten buckets, values are
// written into the cells.
Figure bucket_heatmap(Figure figure, const std::vector<BucketCell>& cells) {
  if (cells.empty()) return empty_figure(figure.name, figure.title, figure.subject);
  const auto means = mean_over_heads(cells);
  const Span keys = span_of(means, &BucketCell::k_bucket), queries = span_of(means, &BucketCell::q_bucket);
  Cells drawn = cells_of(means);
  figure.data = std::move(drawn.data);
  add_scale(figure, values_of(means));
  figure.panels = {bucket_panel(integer_axis(keys.first, keys.last, 12), integer_axis(queries.first, queries.last, 12),
                                std::move(drawn.of_head[0]))};
  for (const BucketCell& cell : means)
    if (std::isfinite(cell.value) && std::max(keys.count(), queries.count()) <= 10)
      figure.panels[0].labels.push_back({.text = {fmt::format("{:.2f}", cell.value)},
                                         .x = static_cast<double>(cell.k_bucket),
                                         .y = static_cast<double>(cell.q_bucket),
                                         .colour = {.role = Colour::readable, .value = cell.value}});
  figure.grid.height = std::clamp(70.0 * static_cast<double>(queries.count()), 176.0, 300.0);
  return figure;
}

// Tics at the first and the last bucket only: panels are small.
Axis end_tics(Span buckets) {
  Axis axis = integer_axis(buckets.first, buckets.last, 12);
  axis.tics = {{static_cast<double>(buckets.first), tic_text(static_cast<double>(buckets.first))}};
  if (buckets.count() > 1)
    axis.tics.push_back({static_cast<double>(buckets.last), tic_text(static_cast<double>(buckets.last))});
  return axis;
}

// A page for each layer, bucket_heatmap_l00 ..., with a panel for each head;
// one colour scale for all pages.
void add_pages(std::vector<Figure>& figures, const std::vector<BucketCell>& cells, const std::string& subject) {
  if (cells.empty()) return;
  const Axis keys = end_tics(span_of(cells, &BucketCell::k_bucket));
  const Axis queries = end_tics(span_of(cells, &BucketCell::q_bucket));
  std::map<std::int64_t, std::vector<BucketCell>> layers;
  for (const BucketCell& cell : cells) layers[cell.layer].push_back(cell);
  for (auto& [layer, of_layer] : layers) {
    Figure page{fmt::format("bucket_heatmap_l{:02}", layer), fmt::format("Layer {}", layer), subject};
    std::ranges::stable_sort(of_layer, {}, &BucketCell::q_head);
    Cells drawn = cells_of(of_layer);
    page.data = std::move(drawn.data);
    add_scale(page, values_of(cells));
    for (auto& [head, marks] : drawn.of_head) {
      page.panels.push_back(bucket_panel(keys, queries, std::move(marks)));
      page.panels.back().title = fmt::format("H{}", head);
    }
    const auto root = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(page.panels.size()))));
    const double side = root == 1 ? 260 : root == 2 ? 150 : 96;
    page.grid = {.columns = page.panels.size() <= 16 ? root : 8, .width = side, .height = side};
    figures.push_back(std::move(page));
  }
}

// Mean over heads against q_bucket - k_bucket, with the middle half of heads
// and a line for each layer.
Figure distance_figure(Figure figure, const std::vector<BucketCell>& cells) {
  const auto summary = plasticity_by_distance(cells);
  if (summary.empty()) return empty_figure(figure.name, figure.title, figure.subject);
  std::vector<double> shown;
  for (const DistanceSummary& one : summary) shown.insert(shown.end(), {one.mean, one.low, one.high});
  std::vector<CurvePoint> points;
  for (const LayerDistance& one : layer_plasticity_by_distance(cells)) {
    points.push_back({one.layer, one.distance, one.mean});
    shown.push_back(one.mean);
  }
  LayerCurves curves = layer_curves(points, "layers", "distance");
  figure.data = {
      {"overall", table_of(summary, "distance", &DistanceSummary::distance, "n_heads", &DistanceSummary::n_heads,
                           "mean", &DistanceSummary::mean, "q25", &DistanceSummary::low, "median",
                           &DistanceSummary::median, "q75", &DistanceSummary::high)},
      {"layers", std::move(curves.table)}};
  const Axis x = padded(integer_axis(summary.front().distance, summary.back().distance, 12), -0.02);
  figure.panels = {{.x = without_grid(labelled(x, {"query bucket − key bucket"})),
                    .y = labelled(padded(unit_axis(shown), 0.02), plasticity_label)}};
  auto& marks = figure.panels[0].marks;
  marks = {
      Mark::band("overall", "distance", "q25", "q75").coloured(category(0)).faded(0.22).named("middle 50 % of heads")};
  marks.insert(marks.end(), curves.marks.begin(), curves.marks.end());
  marks.push_back(Mark::line("overall", "distance", "mean").wide(2).sized(0.5).named("mean over heads"));
  figure.colours = ordered_scale(curves.first, curves.last, "layer");
  return figure;
}

// Share of positional information in a head's heaviest components, mean over
// the heads of each layer, a curve for each layer; dashed: all components weigh
// the same.
Figure component_weights(Figure figure, const PlasticityTables& tables) {
  std::vector<CurvePoint> points;
  std::int64_t dimension = 0;
  for (const CumulativeShare& one : cumulative_component_share(tables)) {
    points.push_back({one.layer, one.count, one.share});
    dimension = std::max(dimension, one.count);
  }
  if (points.empty()) return empty_figure(figure.name, figure.title, figure.subject);
  LayerCurves curves = layer_curves(points, "layers", "components");
  Numbers equal;
  for (std::int64_t i = 1; i <= dimension; ++i)
    equal.push_back(static_cast<double>(i) / static_cast<double>(dimension));
  curves.table.add("equal", std::move(equal));
  Axis x{.low = 0.95, .high = std::max<double>(static_cast<double>(dimension), 2) * 1.05, .log = true};
  for (std::int64_t i = 1; i <= dimension; i *= 2)
    x.tics.push_back({static_cast<double>(i), tic_text(static_cast<double>(i))});
  Axis y = labelled(unit_axis({0, 1}), {"cumulative share"});
  y.high = 1.02;
  figure.data = {{"layers", std::move(curves.table)}};
  figure.panels = {{.x = labelled(x, {"heaviest components of the query"}), .y = y, .marks = std::move(curves.marks)}};
  figure.panels[0].marks.push_back(
      Mark::line("layers", "components", "equal").coloured(muted).dashed().named("equal weights"));
  figure.colours = ordered_scale(curves.first, curves.last, "layer");
  return figure;
}

}  // namespace

std::string head_name(std::int64_t layer, std::int64_t q_head) {
  return fmt::format("L{}H{}", layer, q_head);
}

Figure head_map(Figure figure, const std::vector<HeadValue>& heads, ColourScale scale) {
  if (heads.empty()) return empty_figure(figure.name, figure.title, figure.subject);
  const Span layers = span_of(heads, &HeadValue::layer), of_layer = span_of(heads, &HeadValue::q_head);
  check_tiles(layers.count(), of_layer.count());
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  const auto present = finite(heads);
  for (const HeadValue& head : present) seen.emplace(head.layer, head.q_head);
  std::vector<HeadValue> absent;
  for (std::int64_t layer = layers.first; layer <= layers.last; ++layer)
    for (std::int64_t q_head = of_layer.first; q_head <= of_layer.last; ++q_head)
      if (!seen.contains({layer, q_head})) absent.push_back({.layer = layer, .q_head = q_head});
  figure.panels = {
      {.x = layer_axis(layers), .y = labelled(integer_axis(of_layer.first, of_layer.last, 8), {"query head"})}};
  const auto add = [&](const std::string& name, const std::vector<HeadValue>& tiles, const Mark& mark) {
    if (tiles.empty()) return;
    figure.data.push_back(
        {name, table_of(tiles, "x", &HeadValue::layer, "y", &HeadValue::q_head, "value", &HeadValue::value)});
    figure.panels[0].marks.push_back(mark);
  };
  add("tiles", present, Mark::cell("tiles", "x", "y").coloured(by_column("value")));
  add("empty", absent,
      Mark::cell("empty", "x", "y").coloured({.role = Colour::absent}).named("no value").changed(&Mark::struck, true));
  if (!present.empty()) figure.colours = std::move(scale);
  const auto rows = static_cast<double>(of_layer.count());
  figure.grid = {.aspect = rows / static_cast<double>(layers.count()),
                 .most_height = std::clamp(60 * rows, 176.0, 380.0)};
  return figure;
}

std::vector<Figure> plasticity_figures(const PlasticityTables& tables, const PlasticityFigureOptions& options) {
  const auto heads = head_plasticity(tables), components = effective_components(tables);
  const auto cells = bucket_cells(tables);
  const Axis axis = labelled(unit_axis(values_of(heads)), plasticity_label);
  const auto named = [&](const char* name, const char* title) { return Figure{name, title, tables.title}; };
  std::vector<Figure> figures = {
      head_map(named("plasticity_map", "Attention plasticity"), heads, {ColourScale::sequential, axis}),
      layer_distribution(named("plasticity_by_layer", "Plasticity by layer"), heads, axis),
      ranked_heads(named("plasticity_ranked", "Heads by plasticity"), heads),
      bucket_heatmap(named("bucket_heatmap", "Plasticity, mean over heads"), cells),
      distance_figure(named("plasticity_distance", "Plasticity by distance"), cells),
      component_weights(named("component_weights", "Positional information"), tables),
      layer_distribution(named("component_concentration", "Components that carry position"), components,
                         labelled(count_axis(values_of(components)), {"effective number"})),
  };
  if (options.per_head) add_pages(figures, cells, tables.title);
  return figures;
}

std::vector<std::filesystem::path> draw_plasticity_figures(const PlasticityTables& tables,
                                                           const std::filesystem::path& folder,
                                                           const PlasticityFigureOptions& options) {
  return draw(plasticity_figures(tables, options), folder, options.theme).files;
}

}  // namespace headscope
