// The one value for what was not measured or is not defined: NaN in tables, null in JSON.
#pragma once

#include <limits>

namespace headscope {

inline constexpr double missing = std::numeric_limits<double>::quiet_NaN();

}  // namespace headscope
