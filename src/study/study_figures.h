// The figures of the causal QK-Norm study (seed 004), named as there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "figures/figure.h"
#include "study/conditions.h"
#include "study/runs.h"

namespace headscope {

// Means over seeds, one for each probe or layer, with the ends of their 95 % interval: NaN with one seed. The three
// have the same length, or all are empty.
struct SeedMeans {
  Numbers mean, low, high;
};

// One condition.
struct StudyCurves {
  Integers tokens;  // at each probe
  SeedMeans loss, val_loss, mean_pr;
  SeedMeans layer_pr;               // of each layer, at the end
  std::vector<SeedMeans> gamma_cv;  // of each layer; may be empty
};

struct StudyFigureData {
  std::string title;  // the study's name; may be empty
  PerCondition<std::optional<StudyCurves>> conditions;
  SeedMeans gamma_effect;  // A - B of each layer at the end; empty without A or B
  SeedMeans norm_effect;   // B - C, likewise
  std::size_t seeds = 1;
};

// Curves at the probes that all seeds of a condition share; layers at `tokens`. Values that are not finite do not
// count.
StudyFigureData figure_data(const Study& study, std::int64_t tokens);

//   1_loss                   training and validation loss against tokens
//   2_key_pr_causal          mean key PR against tokens, with the final values: the main result
//   3_per_layer              final key PR of each layer
//   4_causal_decomposition   effect of the gain (A - B) and of normalisation (B - C), by layer
//   5_gamma_cv               coefficient of variation of the gain of A, a curve for each layer
// A condition has the same colour everywhere. What is absent is left out.
std::vector<Figure> study_figures(const StudyFigureData& data);

}  // namespace headscope
