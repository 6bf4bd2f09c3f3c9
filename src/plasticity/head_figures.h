// Pieces of plasticity figures that several share.
#pragma once

#include <string>
#include <vector>

#include "figures/figure.h"
#include "plasticity/aggregates.h"

namespace headscope {

// "L3H5".
std::string head_name(std::int64_t layer, std::int64_t q_head);

// Layer x query head, coloured by value; heads of the rectangle without a value are grey with a stroke. `figure` has
// its names.
Figure head_map(Figure figure, const std::vector<HeadValue>& heads, ColourScale scale);

}  // namespace headscope
