// The figures of attention plasticity (seed 003), from the tables that
// `headscope plasticity` writes.
#pragma once

#include <filesystem>
#include <vector>

#include "figures/figure.h"
#include "figures/theme.h"
#include "plasticity/aggregates.h"

namespace headscope {

struct PlasticityFigureOptions {
  Theme theme = light_theme();  // light, since figures end up on paper
  bool per_head = false;        // a page per layer with the bucket heat map of each
                                // head; off: it is dozens of files
};

// Draws into `folder` and returns every file written (png, svg, gp, dat):
//   plasticity_map            layer x query head
//   plasticity_by_layer       every head, median and quartiles of each layer
//   plasticity_ranked         heads from most to least plastic, with 95 %
//   intervals where known bucket_heatmap            query bucket x key bucket,
//   mean over heads; with per_head also bucket_heatmap_l00, ...
//   plasticity_distance       against query bucket - key bucket
//   component_weights         cumulative share of positional information, by
//   layer component_concentration   effective number of components of every
//   head
std::vector<std::filesystem::path> draw_plasticity_figures(const PlasticityTables& tables,
                                                           const std::filesystem::path& folder,
                                                           const PlasticityFigureOptions& options = {});

// The figures themselves, without drawing them.
std::vector<Figure> plasticity_figures(const PlasticityTables& tables, const PlasticityFigureOptions& options);

}  // namespace headscope
