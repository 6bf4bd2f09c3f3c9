#include "stats/rank_correlation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "stats/oracle.h"

namespace headscope {
namespace {

using Values = std::vector<double>;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(AverageRanks, ShareTheMeanAmongEqualValues) {
  EXPECT_THAT(average_ranks(Values{3, 1, 3, 2, 3}), ::testing::ElementsAre(4, 1, 4, 2, 4));
}

TEST(RankCorrelation, AgreesWithScipy) {
  for (const auto& one : test::stats_oracle("rank_correlation")) {
    const RankCorrelation result = rank_correlation(one.at("x").get<Values>(), one.at("y").get<Values>());
    const auto expect = [&](double value, const char* key) {
      if (one.at(key).is_null()) {
        EXPECT_TRUE(std::isnan(value)) << key << " of " << one.dump();
      } else if (std::fabs(one.at("rho").get<double>()) > 1 - 1e-12) {
        // scipy's rho misses 1 by rounding, which its p-value then shows; ours is exact.
        EXPECT_NEAR(value, one.at(key).get<double>(), 1e-7) << key << " of " << one.dump();
      } else {
        // Student's t is good to 1e-12; scipy's rho itself has rounding of about n eps.
        EXPECT_NEAR(value, one.at(key).get<double>(), 1e-11) << key << " of " << one.dump();
      }
    };
    expect(result.rho, "rho");
    expect(result.low, "low");
    expect(result.high, "high");
    expect(result.p_value, "p_value");
  }
}

TEST(RankCorrelation, OfAMonotoneCurveIsExactlyOne) {
  const RankCorrelation rising = rank_correlation(Values{1, 2, 3, 4, 5}, Values{1, 10, 11, 300, 301});
  EXPECT_EQ(rising.rho, 1);
  EXPECT_EQ(rising.low, 1);
  EXPECT_EQ(rising.p_value, 0);
  EXPECT_EQ(rank_correlation(Values{1, 2, 3, 4}, Values{4, 3, 2, 1}).rho, -1);
}

TEST(RankCorrelation, SaysNothingOfFewPairsOrAConstant) {
  EXPECT_TRUE(std::isnan(rank_correlation(Values{1, 2}, Values{1, 2}).rho));
  const RankCorrelation three = rank_correlation(Values{1, 2, 3}, Values{1, 3, 2});
  EXPECT_DOUBLE_EQ(three.rho, 0.5);
  EXPECT_TRUE(std::isnan(three.low) && std::isnan(three.high));
  EXPECT_FALSE(std::isnan(three.p_value));
  const RankCorrelation constant = rank_correlation(Values{1, 1, 1, 1}, Values{1, 2, 3, 4});
  EXPECT_TRUE(std::isnan(constant.rho) && std::isnan(constant.p_value));
  EXPECT_TRUE(std::isnan(rank_correlation(Values{}, Values{}).rho));
}

TEST(RankCorrelation, LeavesOutPairsWithoutAValue) {
  const RankCorrelation result = rank_correlation(Values{1, nan, 3, 4, 2}, Values{2, 7, 6, 8, nan});
  EXPECT_EQ(result.n, 3U);
  EXPECT_EQ(result.rho, 1);
}

}  // namespace
}  // namespace headscope
