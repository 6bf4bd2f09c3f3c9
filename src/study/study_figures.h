// The figures of the causal QK-Norm study (seed 004), named as there.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "figures/figure.h"
#include "figures/theme.h"
#include "formats/table.h"
#include "study/conditions.h"

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
  SeedMeans layer_pr;             // of each layer, at the end
  std::vector<Numbers> gamma_cv;  // [layer][probe]; may be empty
};

struct StudyFigureData {
  std::string title;                                     // the study's name; may be empty
  std::array<std::optional<StudyCurves>, 3> conditions;  // A learned gain, B gain 1, C no QK-Norm
  SeedMeans gamma_effect;                                // A - B of each layer at the end; empty without A or B
  SeedMeans norm_effect;                                 // B - C, likewise
};

// Draws into `folder` and returns every file written (png, svg, gp, dat):
//   1_loss                   training and validation loss against tokens
//   2_key_pr_causal          mean key PR against tokens, with the final values: the main result
//   3_per_layer              final key PR of each layer
//   4_causal_decomposition   effect of the gain (A - B) and of normalisation (B - C), by layer
//   5_gamma_cv               coefficient of variation of the gain of A, a curve for each layer
// A condition has the same colour everywhere. What is absent is left out; a figure without values says so.
std::vector<std::filesystem::path> draw_study_figures(const StudyFigureData& data, const std::filesystem::path& folder,
                                                      const Theme& theme = light_theme());

// The figures themselves, without drawing them.
std::vector<Figure> study_figures(const StudyFigureData& data);

}  // namespace headscope
