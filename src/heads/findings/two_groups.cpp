#include "heads/findings/two_groups.h"

#include <algorithm>
#include <cmath>

namespace headscope {
namespace {

// How many of the sorted values belong to the lower group. The least variance inside is the most between:
// n1 n2 (m1 - m2)^2, which about the common mean is proportional to s1^2 (1/n1 + 1/n2), s1 the sum of the lower group.
std::size_t best_split(std::span<const double> sorted) {
  double mean = 0;
  for (const double value : sorted) mean += value / static_cast<double>(sorted.size());
  double sum = 0, most = -1;
  std::size_t best = 1;
  for (std::size_t n = 1; n < sorted.size(); ++n) {
    sum += sorted[n - 1] - mean;
    const double between = sum * sum * (1 / static_cast<double>(n) + 1 / static_cast<double>(sorted.size() - n));
    if (between <= most) continue;
    most = between;
    best = n;
  }
  return best;
}

}  // namespace

TwoGroups two_groups(std::span<const double> values, DipTester& tester) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i])) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> sorted;
  for (const std::size_t i : order) sorted.push_back(values[i]);
  TwoGroups groups{tester.test(sorted), {}, {}};
  if (!groups.found()) return groups;
  const auto split = order.begin() + static_cast<std::ptrdiff_t>(best_split(sorted));
  groups.low.assign(order.begin(), split);
  groups.high.assign(split, order.end());
  std::ranges::sort(groups.low);
  std::ranges::sort(groups.high);
  return groups;
}

}  // namespace headscope
