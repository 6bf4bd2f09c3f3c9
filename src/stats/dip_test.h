// The dip test: does a sample come from one population or from more (J. A. Hartigan and P. M. Hartigan, The Dip Test of
// Unimodality, Annals of Statistics 13, 1985)?
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/missing.h"

namespace headscope {

// The largest distance of the empirical distribution function from the nearest unimodal one, exactly: between 1/(2n)
// and 1/4; 0 when all values are equal. Equal values are allowed, in any order. NaN for n < 4 or a value that is
// not finite.
double dip_statistic(std::span<const double> values);

struct DipTest {
  double dip = missing;
  double p_value = missing;  // of one population; NaN where the dip is
  std::size_t n = 0;

  [[nodiscard]] bool rejects() const { return p_value < 0.05; }  // that there is one population
};

// The test against the uniform distribution, of all unimodal ones the hardest to tell from two populations. The dips of
// uniform samples are simulated once for each n and kept: p = (1 + number of them >= dip) / (1 + replicates). The draws
// of an n depend on the seed and n alone, not on what was asked before.
class DipTester {
 public:
  // 2000 replicates: p = 0.05 has a standard error of 0.005.
  explicit DipTester(std::uint64_t seed = 0, std::size_t replicates = 2000) : seed_(seed), replicates_(replicates) {}

  [[nodiscard]] DipTest test(std::span<const double> values);

 private:
  const std::vector<double>& uniform_dips(std::size_t n);

  std::uint64_t seed_;
  std::size_t replicates_;
  std::map<std::size_t, std::vector<double>> dips_;  // by n, smallest first
};

struct TwoGroups {
  DipTest test;                        // of the finite values
  std::vector<std::size_t> low, high;  // places of the values in each group; empty unless found

  [[nodiscard]] bool found() const { return test.rejects(); }
};

// Found when the dip test rejects one population at 5 %. The groups are then those of the best split: the one with the
// least variance inside the groups.
TwoGroups two_groups(std::span<const double> values, DipTester& tester);

}  // namespace headscope
