#include "train/slow_ranks.h"

#include <fmt/format.h>

#include <algorithm>

namespace headscope {

void SlowRanks::add(const std::vector<double>& seconds) {
  sums_.resize(seconds.size());
  for (std::size_t rank = 0; rank < seconds.size(); ++rank) sums_[rank] += seconds[rank];
  ++count_;
}

std::vector<std::string> SlowRanks::found() {
  std::vector<std::string> sentences;
  if (count_ < updates || sums_.size() < 2) return sentences;
  std::vector<double> sorted = sums_;
  std::ranges::sort(sorted);
  const double median = sorted[(sorted.size() - 1) / 2];
  for (std::size_t rank = 0; rank < sums_.size(); ++rank)
    if (sums_[rank] > limit * median && named_.insert(rank).second)
      sentences.push_back(fmt::format("rank {} of {} took {:.0f} % longer than the median rank for the last {} updates",
                                      rank, sums_.size(), 100 * (sums_[rank] / median - 1), count_));
  sums_.clear();
  count_ = 0;
  return sentences;
}

}  // namespace headscope
