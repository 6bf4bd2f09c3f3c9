#include "train/slow_ranks.h"

#include <gmock/gmock.h>

#include <random>

namespace headscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What is said in so many updates with the same times.
std::vector<std::string> said(SlowRanks& ranks, std::size_t times, const std::vector<double>& seconds) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < times; ++i)
    for (std::string& one : ranks.add(seconds)) all.push_back(std::move(one));
  return all;
}

TEST(SlowRanks, AreNamedOnceAfterEnoughUpdates) {
  SlowRanks ranks;
  EXPECT_THAT(said(ranks, SlowRanks::updates - 1, {1, 1, 3, 1.05}), IsEmpty());
  EXPECT_THAT(said(ranks, 1, {1, 1, 3, 1.05}),
              ElementsAre("rank 2 of 4 took 200 % longer than the median rank (median of 100 updates)"));
  EXPECT_THAT(said(ranks, SlowRanks::updates, {1, 1, 3, 1.5}),
              ElementsAre("rank 3 of 4 took 50 % longer than the median rank (median of 100 updates)"));
}

TEST(SlowRanks, AreSlowInMostUpdates) {
  for (const std::size_t slow : {SlowRanks::slow_ones - 1, SlowRanks::slow_ones}) {
    SlowRanks ranks;
    std::vector<std::string> found = said(ranks, slow, {1, 1, 1, 20});
    for (std::string& one : said(ranks, SlowRanks::updates - slow, {1, 1, 1, 1})) found.push_back(std::move(one));
    EXPECT_EQ(found.size(), slow < SlowRanks::slow_ones ? 0 : 1);
  }
}

// 0 where rank 0 measured: it is looked at when it has enough other updates.
TEST(SlowRanks, UpdatesThatSayNothingOfARankAreLeftOut) {
  SlowRanks every;
  EXPECT_THAT(said(every, SlowRanks::updates, {0, 1, 1, 1.5}),
              ElementsAre("rank 3 of 4 took 50 % longer than the median rank (median of 100 updates)"));
  SlowRanks second;
  std::vector<std::string> found;
  for (std::size_t i = 0; i < 2 * SlowRanks::updates; ++i) {
    EXPECT_THAT(found, IsEmpty());
    found = second.add({i % 2 == 0 ? 0.0 : 9.0, 1, 1, 1});
  }
  EXPECT_THAT(found, ElementsAre("rank 0 of 4 took 800 % longer than the median rank (median of 100 updates)"));
  SlowRanks two;
  EXPECT_THAT(said(two, SlowRanks::updates, {0, 9}), IsEmpty());  // nothing is left to compare with
}

// How often any of `count` ranks is named in 100 updates; times are log-normal, those of rank 0 `slower` times as long.
double share_named(std::size_t count, double sd, double slower, int cases) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> seconds(0, sd);
  int named = 0;
  for (int i = 0; i < cases; ++i) {
    SlowRanks ranks;
    for (std::size_t update = 0; update < SlowRanks::updates; ++update) {
      std::vector<double> of_ranks(count);
      for (double& of_rank : of_ranks) of_rank = seconds(random);
      of_ranks[0] *= slower;
      named += ranks.add(of_ranks).empty() ? 0 : 1;
    }
  }
  return static_cast<double>(named) / cases;
}

// The bound of the header: 80 of 100 tosses of a coin, for each rank. However much times vary.
TEST(SlowRanks, EqualRanksAreNotNamed) {
  for (const std::size_t count : {2, 8, 64})
    for (const double sd : {0.02, 0.2, 2.0}) EXPECT_EQ(share_named(count, sd, 1, 300), 0) << count << " ranks, " << sd;
}

// The figures of docs/scale.md.
TEST(SlowRanks, OneThatIsAQuarterSlowerIsNamedWhereTimesVaryLittle) {
  EXPECT_EQ(share_named(8, 0.02, 1.25, 200), 1);
  EXPECT_GT(share_named(8, 0.1, 1.25, 200), 0.95);
  EXPECT_LT(share_named(8, 0.2, 1.25, 200), 0.5);
}

TEST(SlowRanks, OneRankIsNeverSlow) {
  SlowRanks ranks;
  EXPECT_THAT(said(ranks, SlowRanks::updates, {1}), IsEmpty());
}

}  // namespace
}  // namespace headscope
