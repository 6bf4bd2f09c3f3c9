#include "stats/dip_test.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"

namespace headscope {
namespace {

using Places = std::vector<std::ptrdiff_t>;  // indices into the sorted sample

// Distances are in units of 1/n until the end; the dip is half the largest one.
double count(std::ptrdiff_t difference) {
  return static_cast<double>(difference);
}

// The corner before j of the greatest convex minorant of the distribution function on 0..j, for every j.
Places minorant_links(const std::vector<double>& x) {
  Places before(x.size(), 0);
  for (std::ptrdiff_t j = 1; j < std::ssize(x); ++j) {
    std::ptrdiff_t corner = j - 1;
    while (corner != 0 &&
           (x[j] - x[corner]) * count(corner - before[corner]) >= (x[corner] - x[before[corner]]) * count(j - corner))
      corner = before[corner];
    before[j] = corner;
  }
  return before;
}

// The corner after k of the least concave majorant on k..n-1, for every k.
Places majorant_links(const std::vector<double>& x) {
  const std::ptrdiff_t last = std::ssize(x) - 1;
  Places after(x.size(), last);
  for (std::ptrdiff_t k = last - 1; k >= 0; --k) {
    std::ptrdiff_t corner = k + 1;
    while (corner != last &&
           (x[corner] - x[k]) * count(after[corner] - corner) >= (x[after[corner]] - x[corner]) * count(corner - k))
      corner = after[corner];
    after[k] = corner;
  }
  return after;
}

// The corners of one curve in the modal interval.
Places corners(const Places& links, std::ptrdiff_t from, std::ptrdiff_t to) {
  Places chain{from};
  while (chain.back() != to) chain.push_back(links[chain.back()]);
  return chain;
}

// Where minorant and majorant are farthest apart: the next modal interval.
struct Gap {
  double distance = 0;
  std::size_t minorant, majorant;  // places in the chains of corners
};

// `minorant` goes from high to low, `majorant` from low to high.
Gap widest_gap(const std::vector<double>& x, const Places& minorant, const Places& majorant) {
  if (minorant.size() == 2 && majorant.size() == 2) return {1, 1, 1};
  Gap gap{0, minorant.size() - 1, majorant.size() - 1};
  std::size_t g = minorant.size() - 2, l = 1;
  do {
    if (minorant[g] > majorant[l]) {  // the next corner is one of the majorant
      const std::ptrdiff_t at = majorant[l], low = minorant[g + 1], high = minorant[g];
      const double distance = count(at - low + 1) - (x[at] - x[low]) * count(high - low) / (x[high] - x[low]);
      if (distance >= gap.distance) gap = {distance, g + 1, l};
      ++l;
    } else {
      const std::ptrdiff_t at = minorant[g], low = majorant[l - 1], high = majorant[l];
      const double distance = (x[at] - x[low]) * count(high - low) / (x[high] - x[low]) - count(at - low - 1);
      if (distance >= gap.distance) gap = {distance, g, l};
      if (g > 0) --g;
    }
    l = std::min(l, majorant.size() - 1);
  } while (minorant[g] != majorant[l]);
  return gap;
}

// The largest distance of the distribution function above the chord from `low` to `high` (side 1) or, with its steps
// taken from their lower ends, below it (side -1). At least one step, the height of a single value.
double above_chord(const std::vector<double>& x, std::ptrdiff_t low, std::ptrdiff_t high, int side) {
  double most = 1;
  if (high - low <= 1 || x[high] == x[low]) return most;
  const double slope = count(high - low) / (x[high] - x[low]);
  for (std::ptrdiff_t i = low; i <= high; ++i)
    most = std::max(most, side * (count(i - low) - (x[i] - x[low]) * slope) + 1);
  return most;
}

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

double dip_statistic(std::span<const double> values) {
  if (values.size() < 4 || std::ranges::any_of(values, [](double value) { return !std::isfinite(value); }))
    return missing;
  std::vector<double> x(values.begin(), values.end());
  std::ranges::sort(x);
  if (x.front() == x.back()) return 0;
  const Places before = minorant_links(x), after = majorant_links(x);
  std::ptrdiff_t low = 0, high = std::ssize(x) - 1;
  double dip = 1;
  while (true) {
    const Places minorant = corners(before, high, low), majorant = corners(after, low, high);
    const Gap gap = widest_gap(x, minorant, majorant);
    if (gap.distance < dip) break;
    // Outside the next modal interval the nearest unimodal function follows these curves.
    for (std::size_t i = gap.minorant; i + 1 < minorant.size(); ++i)
      dip = std::max(dip, above_chord(x, minorant[i + 1], minorant[i], 1));
    for (std::size_t i = gap.majorant; i + 1 < majorant.size(); ++i)
      dip = std::max(dip, above_chord(x, majorant[i], majorant[i + 1], -1));
    const std::ptrdiff_t next_low = minorant[gap.minorant], next_high = majorant[gap.majorant];
    if ((next_low == low && next_high == high) || next_low == next_high) break;
    low = next_low;
    high = next_high;
  }
  return dip / (2 * static_cast<double>(x.size()));
}

const std::vector<double>& DipTester::uniform_dips(std::size_t n) {
  auto [found, is_new] = dips_.try_emplace(n);
  if (!is_new) return found->second;
  NumpyGenerator generator(seed_ + n);
  std::vector<double> sample(n);
  for (std::size_t i = 0; i < replicates_; ++i) {
    for (double& value : sample) value = generator.uniform();
    found->second.push_back(dip_statistic(sample));
  }
  std::ranges::sort(found->second);
  return found->second;
}

DipTest DipTester::test(std::span<const double> values) {
  DipTest result{dip_statistic(values), missing, values.size()};
  if (std::isnan(result.dip)) return result;
  const std::vector<double>& dips = uniform_dips(values.size());
  const auto as_large = std::ranges::end(dips) - std::ranges::lower_bound(dips, result.dip);
  result.p_value = (1 + static_cast<double>(as_large)) / (1 + static_cast<double>(replicates_));
  return result;
}

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
