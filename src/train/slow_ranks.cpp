#include "train/slow_ranks.h"

#include <fmt/format.h>

#include <algorithm>

namespace headscope {
namespace {

// The lower one of the two in the middle.
double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

std::vector<std::string> SlowRanks::add(std::vector<double> seconds, bool first_measures) {
  if (seconds.size() < 2) return {};
  if (first_measures) seconds.front() = median_of({seconds.begin() + 1, seconds.end()});
  const double median = median_of(seconds);
  if (!(median > 0)) return {};  // not yet known on a GPU
  ratios_.resize(seconds.size());
  for (std::size_t rank = 0; rank < seconds.size(); ++rank) ratios_[rank].push_back(seconds[rank] / median);
  return ratios_.front().size() == updates ? compare() : std::vector<std::string>();
}

std::vector<std::string> SlowRanks::compare() {
  std::vector<std::string> found;
  for (std::size_t rank = 0; rank < ratios_.size(); ++rank) {
    const std::vector<double>& ratios = ratios_[rank];
    const auto above = std::ranges::count_if(ratios, [](double ratio) { return ratio > limit; });
    if (static_cast<std::size_t>(above) >= slow_ones && named_.insert(rank).second)
      found.push_back(fmt::format("rank {} of {} took {:.0f} % longer than the median rank (median of {} updates)",
                                  rank, ratios_.size(), 100 * (median_of(ratios) - 1), updates));
  }
  ratios_.clear();
  return found;
}

}  // namespace headscope
