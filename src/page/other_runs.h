// Runs of `plasticity`, `plasticity compare` and `surgery` for a page: a table for readers, numbers for the views.
#pragma once

#include "page/report_data.h"

namespace headscope {

// Each throws Error(Fault::input) when a table is damaged. A run that has no tables yet adds nothing.
void add_plasticity_tables(const std::filesystem::path& folder, const nlohmann::ordered_json& manifest, ReportRun& run);
void add_comparison_table(const std::filesystem::path& folder, const nlohmann::ordered_json& manifest, ReportRun& run);
void add_surgery_table(const std::filesystem::path& folder, ReportRun& run);

}  // namespace headscope
