#include "page/budget.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/lists.h"

namespace headscope {
namespace {

// The place whose position is nearest.
std::size_t nearest_place(const std::vector<double>& positions, double wanted) {
  const auto above = std::ranges::lower_bound(positions, wanted);
  if (above == positions.begin()) return 0;
  if (above == positions.end()) return positions.size() - 1;
  const auto place = static_cast<std::size_t>(above - positions.begin());
  return wanted - positions[place - 1] <= positions[place] - wanted ? place - 1 : place;
}

// Adds places at equal distances of these positions, until `kept` has `most` or none is new.
void add_evenly(const std::vector<double>& positions, std::size_t most, std::set<std::size_t>& kept) {
  if (kept.size() >= most) return;
  const std::size_t wanted = most - kept.size();
  const double first = positions.front(), range = positions.back() - first;
  for (std::size_t i = 1; i <= wanted; ++i)
    kept.insert(nearest_place(positions, first + range * static_cast<double>(i) / static_cast<double>(wanted + 1)));
}

}  // namespace

std::vector<Detail> details(bool exact, std::optional<std::size_t> moments) {
  if (exact) return {{{12, true}, moments.value_or(std::numeric_limits<std::size_t>::max()), true, true}};
  std::vector<Detail> list;
  const auto add = [&](int bits, std::size_t most, bool all_attention, bool training_batches) {
    const Detail detail{{bits, false}, moments.value_or(most), all_attention, training_batches};
    const bool new_one = list.empty() || list.back().precision.bits != bits || list.back().moments != detail.moments ||
                         list.back().all_attention != all_attention || list.back().training_batches != training_batches;
    if (new_one) list.push_back(detail);
  };
  add(12, default_moments, true, true);
  add(10, default_moments, true, true);
  add(10, 200, true, true);
  add(8, 200, true, true);
  add(8, 100, true, true);
  add(8, 100, false, true);
  add(8, 100, false, false);  // a study of many large runs
  add(8, 50, false, false);
  add(8, 25, false, false);
  return list;
}

std::vector<std::size_t> kept_moments(std::span<const Moment> moments, const std::set<std::int64_t>& changes,
                                      std::size_t most) {
  most = std::max<std::size_t>(most, 2);
  std::set<std::size_t> kept;
  if (moments.size() <= most) {
    for (std::size_t i = 0; i < moments.size(); ++i) kept.insert(i);
    return {kept.begin(), kept.end()};
  }
  const Course course = course_of(moments);
  std::vector<double> linear, logarithmic;
  const auto first_known = std::ranges::find_if(moments, [&](const Moment& moment) { return course.at(moment) > 0; });
  const double unit = first_known == moments.end() ? 1 : static_cast<double>(course.at(*first_known));
  std::vector<std::size_t> changed;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const auto at = static_cast<double>(course.at(moments[i]));
    linear.push_back(at);
    logarithmic.push_back(std::log1p(at / unit));  // the start has a place, too
    if (changes.contains(moments[i].step)) changed.push_back(i);
  }
  kept = {0, moments.size() - 1};
  for (const std::size_t place : evenly_spaced(changed.size(), std::max<std::size_t>(most / 2, 2)))
    if (kept.size() < most) kept.insert(changed[place]);
  add_evenly(logarithmic, kept.size() + (most - kept.size()) / 2, kept);
  add_evenly(linear, most, kept);
  for (const std::size_t place : evenly_spaced(moments.size(), most))  // where two wanted the same moment
    if (kept.size() < most) kept.insert(place);
  return {kept.begin(), kept.end()};
}

}  // namespace headscope
