#include "train/slow_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace headscope {
namespace {

// The lower one of the two in the middle.
double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

void SlowRanks::add(const std::vector<double>& seconds) {
  if (seconds.size() < 2) return;
  seconds_.resize(seconds.size());
  for (std::size_t rank = 0; rank < seconds.size(); ++rank) seconds_[rank].push_back(seconds[rank]);
  if (seconds_.front().size() == updates) compare();
}

void SlowRanks::compare() {
  std::vector<double> typical;
  for (const std::vector<double>& of_rank : seconds_) typical.push_back(median_of(of_rank));
  const double median = median_of(typical);
  for (std::size_t rank = 0; rank < typical.size(); ++rank)
    if (typical[rank] > limit * median && named_.insert(rank).second)
      found_.push_back(fmt::format("rank {} of {} took {:.0f} % longer than the median rank in {} updates", rank,
                                   typical.size(), 100 * (typical[rank] / median - 1), updates));
  seconds_.clear();
}

std::vector<std::string> SlowRanks::found() {
  return std::exchange(found_, {});
}

}  // namespace headscope
