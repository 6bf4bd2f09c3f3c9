#include "plasticity/component_figures.h"

#include "figures/figure_parts.h"
#include "figures/layer_curves.h"
#include "plasticity/head_figures.h"

namespace headscope {

Figure component_weights_figure(const PlasticityTables& tables, const Theme& theme) {
  const std::string name = "component_weights";
  const std::string_view what = "Positional information";
  std::vector<CurvePoint> points;
  std::int64_t dimension = 0;
  for (const CumulativeShare& one : cumulative_component_share(tables)) {
    points.push_back({one.layer, one.count, one.share});
    dimension = std::max(dimension, one.count);
  }
  if (points.empty()) return empty_figure(name, what, tables.title);
  LayerCurves curves = layer_curves(points, "components");
  Numbers equal;
  for (std::int64_t i = 1; i <= dimension; ++i)
    equal.push_back(static_cast<double>(i) / static_cast<double>(dimension));
  curves.table.add("equal", std::move(equal));

  Figure figure{.name = name};
  const Margins around{.left = 58, .right = layer_bar_width(curves.first, curves.last), .top = 50};
  figure.data = {{"layers", curves.table}};
  std::vector<Script> tics;
  for (std::int64_t i = 1; i <= dimension; i *= 2) tics.push_back(format_script("{}", i));
  figure.setup = frame_commands(figure, around, what, tables.title) + legend_above(figure, around) +
                 axis_labels(figure, "'heaviest components of the query'", "'cumulative share'") +
                 format_script("set logscale x 2; set xrange [0.95:{}]\nset xtics ({})\n",
                               std::max<double>(static_cast<double>(dimension), 2) * 1.05, join(tics, ", ")) +
                 axis_commands("y", {.low = 0, .high = 1.02}) +
                 layer_colours(figure, around, curves.first, curves.last, theme);
  figure.plot =
      curves.commands +
      plot_command(
          {format_script("layers using \"components\":\"equal\" with {} lc rgb muted dt 2 lw 1 title 'equal weights'",
                         dimension == 1 ? Script("points pt 6 ps 0.6") : Script("lines")),
           curves.clause});
  return figure;
}

Figure component_concentration_figure(const PlasticityTables& tables) {
  const auto heads = effective_components(tables);
  std::vector<double> values;
  for (const HeadValue& head : heads) values.push_back(head.value);
  return layer_distribution("component_concentration", "Components that carry position", tables.title, heads,
                            count_axis(values), "'effective number'");
}

}  // namespace headscope
