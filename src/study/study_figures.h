// The figures of the causal QK-Norm study (seed 004), named as there.
#pragma once

#include <string>
#include <vector>

#include "figures/figure.h"
#include "study/analyze.h"

namespace headscope {

// Means over seeds, one for each probe or layer, with the ends of their 95 % interval: NaN with one seed. The three
// have the same length, or all are empty.
struct SeedMeans {
  Numbers mean, low, high;
};

// One condition.
struct StudyCurves {
  std::string tag, letter, name;
  std::size_t colour = 0;  // its place among the conditions of the study
  std::size_t seeds = 1;
  Integers tokens;  // at each probe
  SeedMeans loss, val_loss, mean_pr;
  SeedMeans score_std;              // may be empty
  SeedMeans layer_pr;               // of each layer, at the end
  std::vector<SeedMeans> gamma_cv;  // of each layer; may be empty
};

// One effect, over the seeds that have both conditions.
struct EffectCurves {
  std::string name, pair;  // "gamma", "A − B"
  SeedMeans over_time;     // at StudyFigureData::tokens
  SeedMeans layers;        // at the end
  double mean_size = 0;    // over layers, of |effect|
  double noise_size = 0;   // what it would be without any effect; NaN with one seed
  bool is_control = false;
};

struct StudyFigureData {
  std::string title;                    // the study's name; may be empty
  std::vector<StudyCurves> conditions;  // those that have runs
  Integers tokens;                      // probes that all runs share
  std::vector<EffectCurves> effects;
  std::vector<std::string> notes;  // about the effects over time, a line each
  double tau = 1;
};

// Curves at the probes that all seeds of a condition share; layers where conditions are compared. Values that are not
// finite do not count.
StudyFigureData figure_data(const Study& study, const StudyResult& result);

//   1_loss                   training and validation loss against tokens
//   2_key_pr_causal          mean key PR against tokens, with the final values: the main result
//   3_per_layer              final key PR of each layer
//   4_causal_decomposition   effect of the gain (A - B) and of normalisation (B - C), by layer
//   5_gamma_cv               coefficient of variation of the gain of A, a curve for each layer
//   6_effects_over_time      each effect on the mean key PR against tokens, beside ± tau
//   7_effects_by_layer       each effect in each layer with its interval: a forest plot, a panel for each
//   8_score_spread           spread of the scores against tokens; left out where no run has it
// A condition has the same colour everywhere. What is absent is left out.
std::vector<Figure> study_figures(const StudyFigureData& data);

}  // namespace headscope
