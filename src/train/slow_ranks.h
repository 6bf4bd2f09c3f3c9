// Which ranks take longer than the others for the same work: all wait for them.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace headscope {

// A rank is slow where it takes more than 10 % longer than the median rank of the same update, in 80 of 100 updates.
// By chance none is: of equal ranks, each is above the (lower) median in half of the updates at most, whatever the
// distribution of their times, and 80 of 100 tosses of a coin happen once in 2·10^9 cases. Pauses of a machine name
// nobody as long as they are in fewer updates.
class SlowRanks {
 public:
  static constexpr double limit = 1.1;          // times the median rank: chosen
  static constexpr std::size_t updates = 100;   // that are looked at together
  static constexpr std::size_t slow_ones = 80;  // of them

  // The seconds that each rank took for its share of an update. A sentence for each rank that is slow by now and was
  // not named before.
  std::vector<std::string> add(const std::vector<double>& seconds);

 private:
  std::vector<std::string> compare();

  std::vector<std::vector<double>>
      ratios_;  // of each rank to the median rank, in the updates since the last comparison
  std::set<std::size_t> named_;
};

}  // namespace headscope
