// Attention and examples in a page: they are the largest part of an inspection, and fewer heads or examples show as
// much.
#pragma once

#include <string>
#include <vector>

#include "page/report_data.h"

namespace headscope {

inline constexpr double bytes_of_a_megabyte = 1e6;

// Leaves out heads of the attention and examples of each head, evenly over the runs, until both have about `bytes` in
// the page: heads that have a role stay longest, the clearest of each first; examples stay at equal distances. Returns
// sentences for the page: what was left out.
std::vector<std::string> thin_texts(ReportData& data, double bytes);

}  // namespace headscope
