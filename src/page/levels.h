// What the values of a metric can be held against: what a head that does nothing gives, and what roles ask for.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "heads/baseline.h"
#include "heads/roles/definition.h"

namespace headscope {

struct MetricLevel {
  double value = 0;
  std::string text;   // "uniform attention 0.0201", "static sink ≥ 0.3"
  bool role = false;  // what a role asks for
};

using MetricLevels = std::map<std::string_view, std::vector<MetricLevel>>;

// Of each metric: a head that does nothing, where that is known (baseline.h) and need not be drawn for long
// (k_top_energy and k_top_share are); then the minimums of roles that are a bound of the metric itself. Those of
// high_norm and low_norm are not: they depend on the other heads.
MetricLevels levels_of(const BatchShape& shape, const RoleDefinition* definition, Baselines& baselines);

}  // namespace headscope
