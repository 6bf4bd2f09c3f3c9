#include "plasticity/bucket_figures.h"

#include <set>

#include "figures/figure_parts.h"
#include "figures/layer_curves.h"

namespace headscope {
namespace {

struct Buckets {
  std::int64_t first_q = 0, last_q = 0, first_k = 0, last_k = 0;
  [[nodiscard]] std::int64_t rows() const { return last_q - first_q + 1; }
  [[nodiscard]] std::int64_t columns() const { return last_k - first_k + 1; }
};

Buckets buckets_of(const std::vector<BucketCell>& cells) {
  Buckets buckets{cells[0].q_bucket, cells[0].q_bucket, cells[0].k_bucket, cells[0].k_bucket};
  for (const BucketCell& cell : cells) {
    buckets.first_q = std::min(buckets.first_q, cell.q_bucket);
    buckets.last_q = std::max(buckets.last_q, cell.q_bucket);
    buckets.first_k = std::min(buckets.first_k, cell.k_bucket);
    buckets.last_k = std::max(buckets.last_k, cell.k_bucket);
  }
  return buckets;
}

std::vector<double> values_of(const std::vector<BucketCell>& cells) {
  std::vector<double> values;
  for (const BucketCell& cell : cells) values.push_back(cell.value);
  return values;
}

// The text colour, as gnuplot's 0xRRGGBB, that can be read on a cell of this value.
std::int64_t ink_on(double value, const Axis& axis, const Theme& theme) {
  const std::string cell = colour_at(theme.sequential, (value - axis.low) / (axis.high - axis.low));
  return contrast(cell, "#ffffff") > contrast(cell, "#000000") ? 0xffffff : 0x000000;
}

// Where a panel stands on the page: the cells of several panels share one pair of axes, which is much faster than a
// multiplot.
struct Panel {
  double x = 0, y = 0;
};

// The cells with a value, or those without.
Table cell_table(const std::vector<BucketCell>& cells, bool with_value, const std::vector<Panel>& panels,
                 const Axis& axis, const Theme& theme) {
  Integers layer, q_head, q_bucket, k_bucket, n_heads, ink;
  Numbers x, y, value;
  Texts text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const BucketCell& cell = cells[i];
    if (std::isfinite(cell.value) != with_value) continue;
    layer.push_back(cell.layer);
    q_head.push_back(cell.q_head);
    q_bucket.push_back(cell.q_bucket);
    k_bucket.push_back(cell.k_bucket);
    n_heads.push_back(cell.n_heads);
    x.push_back(panels[i].x + static_cast<double>(cell.k_bucket));
    y.push_back(panels[i].y + static_cast<double>(cell.q_bucket));
    value.push_back(cell.value);
    text.push_back(with_value ? fmt::format("{:.2f}", cell.value) : "");
    ink.push_back(with_value ? ink_on(cell.value, axis, theme) : 0);
  }
  Table table("cells");
  table.add("layer", layer).add("q_head", q_head).add("q_bucket", q_bucket).add("k_bucket", k_bucket);
  table.add("n_heads", n_heads).add("x", x).add("y", y).add("value", value);
  if (with_value) table.add("text", text).add("ink", ink);
  return table;
}

// Adds the data blocks and the clauses that draw the cells.
std::vector<Script> add_cells(Figure& figure, const std::vector<BucketCell>& cells, const std::vector<Panel>& panels,
                              const Axis& axis, const Theme& theme) {
  Table present = cell_table(cells, true, panels, axis, theme);
  Table absent = cell_table(cells, false, panels, axis, theme);
  std::vector<Script> clauses;
  if (present.rows() > 0) {
    clauses.push_back(value_tiles("cells"));
    figure.data.push_back({"cells", std::move(present)});
  }
  if (absent.rows() > 0) {
    clauses.push_back(absent_tiles("empty", "'no pairs'"));
    figure.data.push_back({"empty", std::move(absent)});
  }
  return clauses;
}

Script reversed(Axis axis) {
  std::swap(axis.low, axis.high);
  return axis_commands("y", axis);
}

// Panels of one page: up to 16 heads in a square, more in rows of eight, as wide as a page of text.
struct Page {
  std::int64_t columns, rows;
  double panel;           // side of a panel in units
  double step_x, step_y;  // distance between panels in buckets
};

Page page_for(std::int64_t n_heads, const Buckets& buckets) {
  const auto root = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(n_heads))));
  const std::int64_t columns = n_heads <= 16 ? root : 8;
  const double side = static_cast<double>(std::max(buckets.rows(), buckets.columns()));
  return {.columns = columns,
          .rows = (n_heads + columns - 1) / columns,
          .panel = columns == 1   ? 260.0
                   : columns == 2 ? 170.0
                   : columns <= 4 ? 115.0
                                  : 100.0,
          .step_x = static_cast<double>(buckets.columns()) + 0.12 * side,
          .step_y = static_cast<double>(buckets.rows()) + (buckets.rows() == 1 ? 0.3 : 0.12) * side};
}

// Tics at the first and last bucket of every panel of the first column or last row.
Script panel_tics(const Script& axis, std::int64_t count, double step, std::int64_t first, std::int64_t last) {
  std::vector<Script> tics;
  for (std::int64_t i = 0; i < count; ++i) {
    const double from = static_cast<double>(i) * step;
    tics.push_back(format_script("'{}' {:.6g}", first, from + static_cast<double>(first)));
    if (last != first) tics.push_back(format_script("'{}' {:.6g}", last, from + static_cast<double>(last)));
  }
  return format_script("set {}tics scale 0 font ',11' ({})\n", axis, join(tics, ", "));
}

Figure layer_page(std::int64_t layer, const std::vector<BucketCell>& cells, const Buckets& buckets, const Axis& axis,
                  std::string_view whose, const Theme& theme) {
  std::set<std::int64_t> heads;
  for (const BucketCell& cell : cells) heads.insert(cell.q_head);
  const Page page = page_for(static_cast<std::int64_t>(heads.size()), buckets);
  std::map<std::int64_t, Panel> places;
  Texts names;
  Numbers name_x, name_y;
  for (const std::int64_t head : heads) {
    const auto index = static_cast<std::int64_t>(places.size());
    const Panel place{static_cast<double>(index % page.columns) * page.step_x,
                      static_cast<double>(index / page.columns) * page.step_y};
    places[head] = place;
    names.push_back(fmt::format("H{}", head));
    name_x.push_back(place.x + static_cast<double>(buckets.last_k) + 0.45);
    name_y.push_back(place.y + static_cast<double>(buckets.first_q) - 0.45);
  }
  std::vector<Panel> panels;
  for (const BucketCell& cell : cells) panels.push_back(places[cell.q_head]);

  // A head's name stands in the corner of keys that come after the query; above, where there is no such corner.
  const bool one_row = buckets.rows() == 1;
  const Margins around{.right = 94, .top = one_row ? 46.0 : 30.0};
  Figure figure{.name = fmt::format("bucket_heatmap_l{:02}", layer)};
  figure.width =
      static_cast<int>(std::lround((around.left + around.right + static_cast<double>(page.columns) * page.panel) / 3)) *
      3;
  figure.height =
      static_cast<int>(std::lround((around.top + around.bottom + static_cast<double>(page.rows) * page.panel) / 3)) * 3;
  auto clauses = add_cells(figure, cells, panels, axis, theme);
  const bool has_values = figure.data[0].name == "cells";
  Table labels("labels");
  labels.add("x", name_x).add("y", name_y).add("name", names);
  figure.data.push_back({"labels", labels});
  clauses.push_back(format_script(
      "labels using \"x\":\"y\":\"name\" with labels right textcolor rgb ink font ',12' offset character 0,{} notitle",
      one_row ? 1.0 : -0.6));
  const Axis x{.low = static_cast<double>(buckets.first_k) - 0.5,
               .high = static_cast<double>(page.columns - 1) * page.step_x + static_cast<double>(buckets.last_k) + 0.5};
  const Axis y{.low = static_cast<double>(buckets.first_q) - 0.5,
               .high = static_cast<double>(page.rows - 1) * page.step_y + static_cast<double>(buckets.last_q) + 0.5};
  figure.setup = frame_commands(figure, around, fmt::format("Layer {}", layer), whose) + legend_below(figure, around) +
                 "unset grid; unset border\n" + axis_labels(figure, "'key bucket'", "'query bucket'") +
                 axis_commands("x", x) + reversed(y) +
                 panel_tics("x", page.columns, page.step_x, buckets.first_k, buckets.last_k) +
                 panel_tics("y", page.rows, page.step_y, buckets.first_q, buckets.last_q) +
                 (has_values ? colour_bar(figure, around, axis, plasticity_label, theme.sequential) : Script());
  figure.plot = plot_command(clauses);
  return figure;
}

}  // namespace

Figure bucket_heatmap(const std::vector<BucketCell>& cells, std::string_view whose, const Theme& theme) {
  const std::string name = "bucket_heatmap";
  const std::string_view what = "Plasticity, mean over heads";
  if (cells.empty()) return empty_figure(name, what, whose);
  const auto means = mean_over_heads(cells);
  const Buckets buckets = buckets_of(means);
  const Axis axis = unit_axis(values_of(means));
  const Margins around{.right = 94};
  Figure figure{.name = name};
  const double height = std::clamp(70.0 * static_cast<double>(buckets.rows()), 176.0, 300.0);
  figure.height = static_cast<int>(std::lround((height + around.top + around.bottom) / 3)) * 3;
  auto clauses = add_cells(figure, means, std::vector<Panel>(means.size()), axis, theme);
  const bool has_values = figure.data[0].name == "cells";
  if (has_values && std::max(buckets.rows(), buckets.columns()) <= 10)
    clauses.emplace_back(
        "cells using \"x\":\"y\":\"text\":\"ink\" with labels textcolor rgb variable font ',11' notitle");
  figure.setup = frame_commands(figure, around, what, whose) + legend_below(figure, around) +
                 "unset grid; unset border\nset tics scale 0\n" +
                 axis_labels(figure, "'key bucket'", "'query bucket'") +
                 axis_commands("x", integer_axis(buckets.first_k, buckets.last_k, 12)) +
                 reversed(integer_axis(buckets.first_q, buckets.last_q, 12)) +
                 (has_values ? colour_bar(figure, around, axis, plasticity_label, theme.sequential) : Script());
  figure.plot = plot_command(clauses);
  return figure;
}

std::vector<Figure> bucket_heatmap_pages(const std::vector<BucketCell>& cells, std::string_view whose,
                                         const Theme& theme) {
  if (cells.empty()) return {};
  const Buckets buckets = buckets_of(cells);
  const Axis axis = unit_axis(values_of(cells));
  std::map<std::int64_t, std::vector<BucketCell>> layers;
  for (const BucketCell& cell : cells) layers[cell.layer].push_back(cell);
  std::vector<Figure> pages;
  for (const auto& [layer, of_layer] : layers)
    pages.push_back(layer_page(layer, of_layer, buckets, axis, whose, theme));
  return pages;
}

Figure distance_figure(const std::vector<BucketCell>& cells, std::string_view whose, const Theme& theme) {
  const std::string name = "plasticity_distance";
  const std::string_view what = "Plasticity by distance";
  const auto summary = plasticity_by_distance(cells);
  if (summary.empty()) return empty_figure(name, what, whose);
  Integers distance, n_heads;
  Numbers mean, low, median, high;
  std::vector<double> shown;
  for (const DistanceSummary& one : summary) {
    distance.push_back(one.distance);
    n_heads.push_back(one.n_heads);
    mean.push_back(one.mean);
    low.push_back(one.spread.low);
    median.push_back(one.spread.median);
    high.push_back(one.spread.high);
    shown.insert(shown.end(), {one.mean, one.spread.low, one.spread.high});
  }
  Table overall("overall");
  overall.add("distance", distance).add("n_heads", n_heads).add("mean", mean);
  overall.add("q25", low).add("median", median).add("q75", high);

  std::vector<CurvePoint> points;
  for (const LayerDistance& one : layer_plasticity_by_distance(cells)) {
    points.push_back({one.layer, one.distance, one.mean});
    shown.push_back(one.mean);
  }
  const LayerCurves curves = layer_curves(points, "distance");

  Figure figure{.name = name};
  const Margins around{.left = 68, .right = layer_bar_width(curves.first, curves.last), .top = 50};
  const bool one_distance = summary.size() == 1;  // a band of no width cannot be seen: draw a bar
  figure.data = {{"overall", overall}, {"layers", curves.table}};
  figure.setup = frame_commands(figure, around, what, whose) + legend_above(figure, around) +
                 axis_labels(figure, "'query bucket − key bucket'", plasticity_label) + "set grid noxtics ytics\n" +
                 axis_commands("x", padded(integer_axis(distance.front(), distance.back(), 12), -0.02)) +
                 axis_commands("y", padded(unit_axis(shown), 0.02)) +
                 layer_colours(figure, around, curves.first, curves.last, theme);
  figure.plot =
      curves.commands +
      plot_command(
          {one_distance
               ? Script("overall using "
                        "\"distance\":\"mean\":(column(\"distance\")-0.1):(column(\"distance\")+0.1):\"q25\":\"q75\" "
                        "with boxxyerror fc rgb accent fs transparent solid 0.22 noborder title 'middle 50 %'")
               : Script("overall using \"distance\":\"q25\":\"q75\" with filledcurves fc rgb accent fs transparent "
                        "solid 0.22 "
                        "noborder title 'middle 50 %'"),
           curves.clause,
           one_distance
               ? Script()
               : Script("for [quartile in 'q25 q75'] overall using \"distance\":(column(quartile)) with lines lc rgb "
                        "ink lw 0.8 dt 3 notitle"),
           "overall using \"distance\":\"mean\" with linespoints pt 7 ps 0.5 lc rgb ink lw 2 title 'mean over heads'"});
  return figure;
}

}  // namespace headscope
