// How a number stands in a sentence, where several folders write the same kind.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace headscope {

// "p = 0.42", "p < 0.001", "p unknown"
inline std::string p_text(double p) {
  if (std::isnan(p)) return "p unknown";
  return p < 0.001 ? "p < 0.001" : fmt::format("p = {:.2g}", p);
}

}  // namespace headscope
