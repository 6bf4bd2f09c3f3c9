// Numbers of a column as text: all with as many digits behind the point, so that they can be compared at a glance.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace headscope {

// Four digits of the typical value, which is the median of sizes; none behind the point of large numbers, six at most.
int column_digits(std::span<const double> values);

// With a true minus sign; "–" for what is not known.
std::string column_cell(double value, int digits);
std::string interval_cell(double low, double high, int digits);  // "−0.70 to −0.53"
std::vector<std::string> column_text(std::span<const double> values);

}  // namespace headscope
