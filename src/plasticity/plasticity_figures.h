// The figures of attention plasticity (seed 003), from the tables that `headscope plasticity` writes.
#pragma once

#include <string>
#include <vector>

#include "figures/figure.h"
#include "plasticity/aggregates.h"

namespace headscope {

struct PlasticityFigureOptions {
  bool per_head = false;  // a page per layer with the bucket heat map of each head; off: it is dozens of files
};

//   plasticity_map            layer x query head
//   plasticity_by_layer       every head, median and quartiles of each layer
//   plasticity_ranked         heads from most to least plastic, with 95 % intervals where known
//   bucket_heatmap            query bucket x key bucket, mean over heads; with per_head also bucket_heatmap_l00, ...
//   plasticity_distance       against query bucket - key bucket; both without cells and distances that few heads have
//   component_weights         cumulative share of positional information, by layer
//   component_concentration   effective number of components of every head
//   gaussian_check            with checks: ap_overall against ap_empirical, with the diagonal. A head's bar is the
//                             interval of its gap. Coloured: gaps larger than 0.02 in size that are found at a false
//                             discovery rate of 5 % over all heads
//   gaussian_gap              with checks: layer x query head, coloured by ap_gap
std::vector<Figure> plasticity_figures(const PlasticityTables& tables, const PlasticityFigureOptions& options = {});

// The last two, from the columns layer, q_head, ap_empirical, ap_gap and ap_gap_se.
std::vector<Figure> check_figures(const Table& checks, const std::string& subject);

// Two runs side by side, head by head.
struct PlasticityComparison {
  // layer, q_head, ap_1, ap_2, difference (= ap_2 - ap_1), low, high (the 95 % interval of the difference, may be
  // missing), significant (0 or 1)
  Table table = Table("comparison");
  std::string name_1, name_2;  // of the runs
};

//   plasticity_comparison   ap_2 against ap_1 with the diagonal. A head's bar is the interval of its difference, put at
//                           ap_1: where it does not cross the diagonal, the heads differ
//   plasticity_difference   layer x query head, coloured by ap_2 - ap_1
// Throws Error(Fault::input) when the differences are not ap_2 - ap_1.
std::vector<Figure> comparison_figures(const PlasticityComparison& comparison);

// "L3H5".
std::string head_name(const HeadValue& head);

// Layer x query head, coloured by value; heads of the rectangle without a value are grey with a stroke. `figure` has
// its names.
Figure head_map(Figure figure, const std::vector<HeadValue>& heads, ColourScale scale);

}  // namespace headscope
