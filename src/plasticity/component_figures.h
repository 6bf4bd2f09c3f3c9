// Figures of positional information over the components of the query vectors.
#pragma once

#include <string_view>

#include "figures/figure.h"
#include "plasticity/plasticity_summary.h"

namespace headscope {

// Share of positional information in a head's heaviest components, mean over the heads of each layer, a curve for each
// layer; dashed: all components weigh the same.
Figure component_weights_figure(const PlasticityTables& tables, const Theme& theme);

// The effective number of components, exp of the entropy of the weights, of every head, by layer.
Figure component_concentration_figure(const PlasticityTables& tables);

}  // namespace headscope
