// Quartiles of the values that are known.
#pragma once

#include <vector>

#include "core/missing.h"

namespace headscope {

// Of the finite values, linear between order statistics (numpy's default); missing when there are none.
struct Quartiles {
  double low = missing;
  double median = missing;
  double high = missing;
};
Quartiles quartiles(std::vector<double> values);

}  // namespace headscope
