// Two runs side by side, head by head.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "figures/figure.h"
#include "figures/theme.h"
#include "formats/table.h"

namespace headscope {

// `table`: layer, q_head, ap_1, ap_2, difference (= ap_2 - ap_1), low, high
// (the 95 % interval of the difference, may be missing), significant (0 or 1).
struct PlasticityComparison {
  Table table = Table("comparison");
  std::string name_1, name_2;  // of the runs
};

// Draws into `folder` and returns every file written:
//   plasticity_comparison   ap_2 against ap_1 with the diagonal. A head's bar
//   is the interval of its difference, put at
//                           ap_1: where it does not cross the diagonal, the
//                           heads differ
//   plasticity_difference   layer x query head, coloured by ap_2 - ap_1
// Throws Error(Fault::input) when the differences are not ap_2 - ap_1.
std::vector<std::filesystem::path> draw_comparison_figure(const PlasticityComparison& comparison,
                                                          const std::filesystem::path& folder,
                                                          const Theme& theme = light_theme());

// The figures themselves, without drawing them.
std::vector<Figure> comparison_figures(const PlasticityComparison& comparison);

}  // namespace headscope
