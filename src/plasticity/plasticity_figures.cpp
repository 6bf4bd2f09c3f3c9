#include "plasticity/plasticity_figures.h"

#include "figures/figure_parts.h"
#include "plasticity/bucket_figures.h"
#include "plasticity/component_figures.h"
#include "plasticity/head_figures.h"

namespace headscope {

std::vector<Figure> plasticity_figures(const PlasticityTables& tables, const PlasticityFigureOptions& options) {
  const Theme& theme = options.theme;
  const auto heads = head_plasticity(tables);
  const auto cells = bucket_cells(tables);
  std::vector<double> values;
  for (const HeadValue& head : heads) values.push_back(head.value);
  const Axis axis = unit_axis(values);
  std::vector<Figure> figures = {
      head_map("plasticity_map", "Attention plasticity", tables.title, heads, axis, plasticity_label, theme.sequential),
      layer_distribution("plasticity_by_layer", "Plasticity by layer", tables.title, heads, axis, plasticity_label),
      ranked_heads("plasticity_ranked", "Heads by plasticity", tables.title, heads, plasticity_label, theme),
      bucket_heatmap(cells, tables.title, theme),
      distance_figure(cells, tables.title, theme),
      component_weights_figure(tables, theme),
      component_concentration_figure(tables),
  };
  if (options.per_head)
    for (Figure& page : bucket_heatmap_pages(cells, tables.title, theme)) figures.push_back(std::move(page));
  return figures;
}

std::vector<std::filesystem::path> draw_plasticity_figures(const PlasticityTables& tables,
                                                           const std::filesystem::path& folder,
                                                           const PlasticityFigureOptions& options) {
  return draw(plasticity_figures(tables, options), folder, options.theme).files;
}

}  // namespace headscope
