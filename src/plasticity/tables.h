// The tables of a plasticity run.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "formats/table.h"
#include "plasticity/head.h"

namespace headscope {

inline constexpr const char* head_uncertainty_csv = "head_uncertainty.csv";
inline constexpr const char* cell_uncertainty_csv = "cell_uncertainty.csv";
inline constexpr const char* head_replicates_csv = "head_replicates.csv";

// Rows in order of layer, query head, then bucket pair, component or replicate.
Table head_table(const std::vector<HeadResult>& heads, Variant variant);
Table cell_table(const std::vector<HeadResult>& heads, Variant variant);
Table component_table(const std::vector<HeadResult>& heads, Variant variant);
Table head_uncertainty_table(const std::vector<HeadResult>& heads);
Table cell_uncertainty_table(const std::vector<HeadResult>& heads);
Table replicate_table(const std::vector<HeadResult>& heads);

}  // namespace headscope
