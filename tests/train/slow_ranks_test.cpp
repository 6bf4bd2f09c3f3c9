#include "train/slow_ranks.h"

#include <gmock/gmock.h>

namespace headscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SlowRanks, AreNamedOnceAfterEnoughUpdates) {
  SlowRanks ranks;
  const auto add = [&](int times, const std::vector<double>& seconds) {
    for (int i = 0; i < times; ++i) ranks.add(seconds);
  };
  add(SlowRanks::updates - 1, {1, 1, 3, 1.05});
  EXPECT_THAT(ranks.found(), IsEmpty());
  add(1, {1, 1, 3, 1.05});
  EXPECT_THAT(ranks.found(), ElementsAre("rank 2 of 4 took 200 % longer than the median rank for the last 20 updates"));
  add(SlowRanks::updates, {1, 1, 3, 1.5});
  EXPECT_THAT(ranks.found(), ElementsAre("rank 3 of 4 took 50 % longer than the median rank for the last 20 updates"));
}

TEST(SlowRanks, OneRankIsNeverSlow) {
  SlowRanks ranks;
  for (int i = 0; i < SlowRanks::updates; ++i) ranks.add({1});
  EXPECT_THAT(ranks.found(), IsEmpty());
}

}  // namespace
}  // namespace headscope
