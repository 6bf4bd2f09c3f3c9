// Names of measurements, to be compared as sets: a test that fails shows which one is missing or new.
#pragma once

#include <set>
#include <string_view>

#include "heads/metrics.h"

namespace headscope::test {

inline std::set<std::string_view> names_of(const HeadValues& values) {
  std::set<std::string_view> names;
  for (const auto& [metric, unused] : values) names.insert(metric);
  return names;
}

// Those that HeadMeasurer makes. Others need sequences of their own, or are measured at probes only.
inline std::set<std::string_view> names_of_one_pass() {
  std::set<std::string_view> names;
  for (const Metric& metric : head_metrics())
    if (metric.group != MetricGroup::induction && metric.group != MetricGroup::other_rank &&
        metric.group != MetricGroup::score)
      names.insert(metric.name);
  return names;
}

}  // namespace headscope::test
