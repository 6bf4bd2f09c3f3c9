// Which ranks take longer than the others for the same work: all wait for them.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace headscope {

class SlowRanks {
 public:
  static constexpr double limit = 1.1;  // times the median rank
  // Looked at together, by their median: a pause of a machine makes some of them long, and names nobody. With so many,
  // 8 equal ranks whose updates vary by 20 % are named in 0.3 % of the cases; with 20 it would be 35 %.
  static constexpr std::size_t updates = 100;

  // The seconds that each rank took for its share of an update.
  void add(const std::vector<double>& seconds);
  // A sentence for each rank that was beyond the limit since the last call and was not named before.
  [[nodiscard]] std::vector<std::string> found();

 private:
  void compare();

  std::vector<std::vector<double>> seconds_;  // of each rank, in the updates since the last comparison
  std::set<std::size_t> named_;
  std::vector<std::string> found_;
};

}  // namespace headscope
