// Figures with one mark per head: a map, the distribution by layer, a ranking.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "figures/axis.h"
#include "figures/figure.h"
#include "plasticity/plasticity_summary.h"

namespace headscope {

// Layer x query head, coloured by value; heads of the rectangle without a value are grey with a stroke. `bar_label` is
// a gnuplot string.
Figure head_map(const std::string& name, std::string_view what, std::string_view whose,
                const std::vector<HeadValue>& heads, const Axis& axis, const Script& bar_label,
                const std::vector<std::string>& colours);

// Every head as a point beside its layer, with median and quartiles of the layer.
Figure layer_distribution(const std::string& name, std::string_view what, std::string_view whose,
                          const std::vector<HeadValue>& heads, const Axis& axis, const Script& label);

// Heads from the largest value to the smallest, coloured by layer, with intervals where known. Up to 24 heads are all
// named; of more, the first and last five are.
Figure ranked_heads(const std::string& name, std::string_view what, std::string_view whose,
                    const std::vector<HeadValue>& heads, const Script& label, const Theme& theme);

}  // namespace headscope
