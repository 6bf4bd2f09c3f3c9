#include "train/slow_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace headscope {
namespace {

// The lower one of the two in the middle.
double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

std::vector<std::string> SlowRanks::add(const std::vector<double>& seconds) {
  const auto is_known = [](double one) { return one > 0; };
  std::vector<double> known;
  std::ranges::copy_if(seconds, std::back_inserter(known), is_known);
  if (known.size() < 2) return {};
  const double median = median_of(known);
  std::vector<std::string> found;
  ratios_.resize(seconds.size());
  for (std::size_t rank = 0; rank < seconds.size(); ++rank) {
    if (!is_known(seconds[rank])) continue;
    std::vector<double>& ratios = ratios_[rank];
    ratios.push_back(seconds[rank] / median);
    if (ratios.size() < updates) continue;
    const auto above = std::ranges::count_if(ratios, [](double ratio) { return ratio > limit; });
    if (static_cast<std::size_t>(above) >= slow_ones && named_.insert(rank).second)
      found.push_back(fmt::format("rank {} of {} took {:.0f} % longer than the median rank (median of {} updates)",
                                  rank, ratios_.size(), 100 * (median_of(ratios) - 1), updates));
    ratios.clear();
  }
  return found;
}

}  // namespace headscope
