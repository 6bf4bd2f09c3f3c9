#include "stats/welch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "study/oracle.h"

namespace headscope {
namespace {

using Values = std::vector<double>;

TEST(Welch, AgreesWithScipy) {
  for (const auto& one : test::study_oracle("welch")) {
    const auto a = one.at("a").get<Values>(), b = one.at("b").get<Values>();
    const WelchTest test = welch_test(a, b);
    // Relative 1e-10, as everything that goes through Student's t; the ends may be near 0.
    const auto expect = [&](double value, const char* key, double scale) {
      const double expected = one.at(key).get<double>();
      EXPECT_NEAR(value, expected, 1e-10 * (std::fabs(expected) + scale)) << key << " of " << one.dump();
    };
    expect(test.t, "t", 0);
    expect(test.df, "df", 0);
    expect(test.p_value, "p_value", 0);
    expect(test.low, "low", test.standard_error);
    expect(test.high, "high", test.standard_error);
    const MeanInterval interval = mean_interval(a);
    const auto expected = one.at("interval_a").get<Values>();
    EXPECT_NEAR(interval.mean, expected[0], 1e-12 * expected[0]);
    EXPECT_NEAR(interval.standard_error, expected[1], 1e-12);
    EXPECT_NEAR(interval.low, expected[2], 1e-9);
    EXPECT_NEAR(interval.high, expected[3], 1e-9);
    EXPECT_EQ(interval.n, a.size());
  }
}

TEST(Welch, OfTwoPairsByHand) {
  // Means 2 and 6, variances 2 and 8, so se^2 = 1 + 4, df = 25 / (1 + 16).
  const WelchTest test = welch_test(Values{1, 3}, Values{4, 8});
  EXPECT_DOUBLE_EQ(test.difference, -4);
  EXPECT_DOUBLE_EQ(test.standard_error, std::sqrt(5.0));
  EXPECT_DOUBLE_EQ(test.t, -4 / std::sqrt(5.0));
  EXPECT_DOUBLE_EQ(test.df, 25.0 / 17);
}

TEST(Welch, WithoutSpreadOrWithOneValueSaysWhatItCan) {
  const WelchTest single = welch_test(Values{3}, Values{1, 2});
  EXPECT_EQ(single.difference, 1.5);
  EXPECT_TRUE(std::isnan(single.p_value) && std::isnan(single.low));
  EXPECT_TRUE(std::isnan(welch_test(Values{}, Values{1, 2}).difference));
  EXPECT_EQ(welch_test(Values{2, 2}, Values{2, 2}).p_value, 1);
  EXPECT_EQ(welch_test(Values{2, 2}, Values{3, 3}).p_value, 0);
}

TEST(MeanInterval, NeedsTwoValues) {
  EXPECT_TRUE(std::isnan(mean_interval(Values{}).mean));
  const MeanInterval one = mean_interval(Values{5});
  EXPECT_EQ(one.mean, 5);
  EXPECT_TRUE(std::isnan(one.standard_error) && std::isnan(one.low) && std::isnan(one.high));
}

}  // namespace
}  // namespace headscope
