#include "stats/paired_test.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "study/oracle.h"

namespace headscope {
namespace {

using Values = std::vector<double>;
constexpr double close = 1e-9;

TEST(PairedTest, AgreesWithScipy) {
  for (const auto& one : test::study_oracle("paired")) {
    const auto differences = one.at("differences").get<Values>();
    const auto [interval, p_value, p_equivalence] = paired_test(differences, one.at("margin"));
    EXPECT_NEAR(p_value, one.at("p_value"), close) << one.dump();
    EXPECT_NEAR(p_equivalence, one.at("p_equivalence"), close) << one.dump();
    EXPECT_NEAR(interval.low, one.at("low"), close) << one.dump();
    EXPECT_NEAR(interval.high, one.at("high"), close) << one.dump();
    EXPECT_NEAR(sign_flip_test(differences), one.at("p_sign_flip"), close) << one.dump();
    const auto expected = one.at("interval").get<Values>();
    EXPECT_NEAR(interval.mean, expected[0], close);
    EXPECT_NEAR(interval.standard_error, expected[1], close);
    EXPECT_EQ(interval.n, differences.size());
  }
}

TEST(PairedTest, OfTwoDifferencesByHand) {
  // Mean 4, deviation sqrt(8), se 2; one degree of freedom is Cauchy: P(T > t) = 1/2 - atan(t)/pi.
  const PairedTest test = paired_test(Values{2, 6}, 5);
  EXPECT_DOUBLE_EQ(test.difference.standard_error, 2);
  EXPECT_NEAR(test.p_value, 1 - 2 / M_PI * std::atan(2.0), close);
  EXPECT_NEAR(test.p_equivalence, 0.5 - std::atan(0.5) / M_PI, close);  // of the nearer end, 5
}

TEST(PairedTest, WithoutSpreadOrWithOnePairSaysWhatItCan) {
  const PairedTest one = paired_test(Values{3}, 1);
  EXPECT_EQ(one.difference.mean, 3);
  EXPECT_TRUE(std::isnan(one.p_value) && std::isnan(one.p_equivalence) && std::isnan(one.difference.low));
  EXPECT_TRUE(std::isnan(paired_test(Values{}, 1).difference.mean));
  const auto p_values = [](double mean, double margin) {
    const PairedTest test = paired_test(Values{mean, mean}, margin);
    return std::pair(test.p_value, test.p_equivalence);
  };
  EXPECT_EQ(p_values(0, 1), std::pair(1.0, 0.0));
  EXPECT_EQ(p_values(0.5, 1), std::pair(0.0, 0.0));
  EXPECT_EQ(p_values(-1, 1), std::pair(0.0, 1.0));  // at the margin
}

TEST(Holm, AgreesWithItsDefinition) {
  for (const auto& one : test::study_oracle("holm")) {
    const auto adjusted = holm_adjusted(one[0].get<Values>());
    const auto expected = one[1].get<Values>();
    ASSERT_EQ(adjusted.size(), expected.size());
    for (std::size_t i = 0; i < adjusted.size(); ++i) EXPECT_NEAR(adjusted[i], expected[i], close) << one.dump();
  }
}

TEST(Holm, ByHand) {
  EXPECT_EQ(holm_adjusted({0.25, 0.0625, 0.125}), (Values{0.25, 0.1875, 0.25}));  // 3/16, 2/8, 1/4
  EXPECT_EQ(holm_adjusted({0.5, 0.5}), (Values{1, 1}));
  EXPECT_EQ(holm_adjusted({}), Values{});
  const auto with_a_gap = holm_adjusted({std::nan(""), 0.125, 0.25});  // a family of two
  EXPECT_TRUE(std::isnan(with_a_gap[0]));
  EXPECT_EQ(with_a_gap[1], 0.25);
}

TEST(SignFlips, AreCountedExactly) {
  EXPECT_EQ(sign_flip_test(Values{1, 2, 3, 4, 5, 6}), 2.0 / 64);  // itself and its mirror image
  EXPECT_EQ(sign_flip_test(Values{1, 1, 1, -1}), 10.0 / 16);      // |sum| is 4 twice, 2 eight times
  EXPECT_EQ(sign_flip_test(Values{1, -1}), 1);
  EXPECT_EQ(sign_flip_test(Values{0.1, 0.2, 0.3, -0.3}), 1 - 0.0 - 4.0 / 16);  // equal but for rounding
  EXPECT_EQ(sign_flip_test(Values(most_flipped, 1)), std::ldexp(1, 1 - static_cast<int>(most_flipped)));
  EXPECT_TRUE(std::isnan(sign_flip_test(Values{})));
  EXPECT_TRUE(std::isnan(sign_flip_test(Values(most_flipped + 1, 1))));
}

TEST(MeanInterval, NeedsTwoValues) {
  EXPECT_TRUE(std::isnan(mean_interval(Values{}).mean));
  const MeanInterval one = mean_interval(Values{5});
  EXPECT_EQ(one.mean, 5);
  EXPECT_TRUE(std::isnan(one.standard_error) && std::isnan(one.low) && std::isnan(one.high));
}

}  // namespace
}  // namespace headscope
