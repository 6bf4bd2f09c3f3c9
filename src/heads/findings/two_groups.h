// Whether values fall into two groups, and which.
#pragma once

#include <span>
#include <vector>

#include "stats/dip_test.h"

namespace headscope {

struct TwoGroups {
  DipTest test;                        // of the finite values
  std::vector<std::size_t> low, high;  // places of the values in each group; empty unless found

  [[nodiscard]] bool found() const { return test.rejects(); }
};

// Found when the dip test rejects one population at 5 %. The groups are then those of the best split: the one with the
// least variance inside the groups.
TwoGroups two_groups(std::span<const double> values, DipTester& tester);

}  // namespace headscope
