// Which ranks take longer than the others for the same work: all wait for them.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace headscope {

// A rank is slow where it takes more than 10 % longer than the median rank of the same update, in 80 of 100 updates.
// Where times are independent from update to update, none is by chance: of equal ranks, each is above the (lower)
// median in half of the updates at most, whatever the distribution of their times, and 80 of 100 tosses of a coin
// happen once in 2·10^9 cases. Pauses of a machine name nobody as long as they are in fewer updates. A rank that is
// slow for minutes and then another one are both named: that is no chance.
class SlowRanks {
 public:
  static constexpr double limit = 1.1;          // times the median rank: chosen
  static constexpr std::size_t updates = 100;   // that are looked at together
  static constexpr std::size_t slow_ones = 80;  // of them

  // The seconds that each rank took for its share of an update; 0 where they say nothing of it: not known yet, or the
  // rank measured heads, too. A sentence for each rank that is slow by now and was not named before.
  std::vector<std::string> add(const std::vector<double>& seconds);

 private:
  // Of each rank to the median rank, in the updates since it was last looked at that say something of it.
  std::vector<std::vector<double>> ratios_;
  std::set<std::size_t> named_;
};

}  // namespace headscope
