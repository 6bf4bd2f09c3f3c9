// Which ranks take longer than the others for the same work: all wait for them.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace headscope {

class SlowRanks {
 public:
  static constexpr double limit = 1.1;  // times the median
  static constexpr int updates = 20;    // that are looked at together: one alone may meet anything on its machine

  // The seconds that each rank took for its share of an update.
  void add(const std::vector<double>& seconds);
  // A sentence for each rank that was beyond the limit since the last call and was not named before.
  [[nodiscard]] std::vector<std::string> found();

 private:
  std::vector<double> sums_;
  int count_ = 0;
  std::set<std::size_t> named_;
};

}  // namespace headscope
