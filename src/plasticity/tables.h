// The tables of a plasticity run and of a comparison, in memory and as files of a run folder.
#pragma once

#include "plasticity/aggregates.h"
#include "plasticity/compare.h"
#include "plasticity/plasticity.h"
#include "plasticity/plasticity_figures.h"
#include "run/run_folder.h"

namespace headscope {

// Three tables have names of their own in the options; these have fixed names.
inline constexpr const char* head_uncertainty_csv = "head_uncertainty.csv";
inline constexpr const char* cell_uncertainty_csv = "cell_uncertainty.csv";
inline constexpr const char* head_replicates_csv = "head_replicates.csv";
inline constexpr const char* head_checks_csv = "head_checks.csv";
inline constexpr const char* comparison_csv = "comparison.csv";

// What the figures show. Rows are in order of layer, query head, then bucket pair or component.
PlasticityTables figure_tables(const PlasticityResult& result, const std::string& title);
PlasticityComparison figure_tables(const Comparison& comparison);

// All tables as CSV; none when the result has no head.
void write_plasticity(const PlasticityResult& result, const RunFolder& folder);
void write_comparison(const Comparison& comparison, const RunFolder& folder);

}  // namespace headscope
