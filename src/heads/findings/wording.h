// How numbers and names stand in sentences and tables.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/wording.h"
#include "heads/findings/measured.h"

namespace headscope {

// Three significant digits with a true minus sign; "–" for a number that is not known.
std::string number_text(double value);
std::string percent_text(double share);                        // "83 %"
std::string interval_text(double low, double high);            // "−0.7 to −0.53"
std::string head_text(std::int64_t layer, std::int64_t head);  // "L5H1"
std::string joined(std::span<const std::string> parts);        // "a, b and c"
std::string counted(std::size_t n, std::string_view thing);    // "1 head", "3 heads"

// "Not answered: entropy was not tracked."
std::string not_tracked_text(std::span<const std::string> metrics);

}  // namespace headscope
