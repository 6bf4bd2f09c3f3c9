#include "train/slow_ranks.h"

#include <gmock/gmock.h>

#include <random>

namespace headscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

void add(SlowRanks& ranks, std::size_t times, const std::vector<double>& seconds) {
  for (std::size_t i = 0; i < times; ++i) ranks.add(seconds);
}

TEST(SlowRanks, AreNamedOnceAfterEnoughUpdates) {
  SlowRanks ranks;
  add(ranks, SlowRanks::updates - 1, {1, 1, 3, 1.05});
  EXPECT_THAT(ranks.found(), IsEmpty());
  add(ranks, 1, {1, 1, 3, 1.05});
  EXPECT_THAT(ranks.found(), ElementsAre("rank 2 of 4 took 200 % longer than the median rank in 100 updates"));
  add(ranks, SlowRanks::updates, {1, 1, 3, 1.5});
  EXPECT_THAT(ranks.found(), ElementsAre("rank 3 of 4 took 50 % longer than the median rank in 100 updates"));
}

TEST(SlowRanks, PausesOfAMachineNameNobody) {
  SlowRanks ranks;
  add(ranks, SlowRanks::updates / 2 - 1, {1, 1, 1, 20});
  add(ranks, SlowRanks::updates / 2 + 1, {1, 1, 1, 1});
  EXPECT_THAT(ranks.found(), IsEmpty());
}

// docs/scale.md says 0.3 %.
TEST(SlowRanks, EqualRanksThatVaryAreSeldomNamed) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> seconds(0, 0.2);
  constexpr int cases = 2000;
  int named = 0;
  for (int i = 0; i < cases; ++i) {
    SlowRanks ranks;
    for (std::size_t update = 0; update < SlowRanks::updates; ++update) {
      std::vector<double> of_ranks(8);
      for (double& of_rank : of_ranks) of_rank = seconds(random);
      ranks.add(of_ranks);
    }
    named += ranks.found().empty() ? 0 : 1;
  }
  EXPECT_NEAR(static_cast<double>(named) / cases, 0.003, 0.003);  // two standard errors are 0.0024
}

TEST(SlowRanks, OneRankIsNeverSlow) {
  SlowRanks ranks;
  add(ranks, SlowRanks::updates, {1});
  EXPECT_THAT(ranks.found(), IsEmpty());
}

}  // namespace
}  // namespace headscope
