#include "stats/power.h"

#include <gtest/gtest.h>

#include "study/oracle.h"

namespace headscope {
namespace {

TEST(Power, AgreesWithScipy) {
  for (const auto& one : test::study_oracle("power")) {
    const PairedDesign design{one.at("deviation"), one.at("margin"), one.at("family")};
    const double mean = one.at("mean");
    const std::size_t n = one.at("n");
    EXPECT_NEAR(chance_of_different(design, mean, n), one.at("different"), 1e-9) << one.dump();
    EXPECT_NEAR(chance_of_equivalent(design, mean, n), one.at("equivalent"), 1e-9) << one.dump();
  }
}

TEST(Power, WithoutSpreadIsCertain) {
  const PairedDesign design{.deviation = 0};
  EXPECT_EQ(chance_of_different(design, 1, 2), 1);
  EXPECT_EQ(chance_of_different(design, 0.99, 2), 0);
  EXPECT_EQ(chance_of_equivalent(design, 0.99, 2), 1);
  EXPECT_EQ(chance_of_equivalent(design, -1, 2), 0);
  EXPECT_EQ(pairs_for_different(design), 2u);
  EXPECT_EQ(pairs_for_equivalent(design), 2u);
}

TEST(Power, TheNumberOfPairsIsTheSmallestThatReachesIt) {
  for (const double deviation : {0.2, 0.42, 0.6, 1.5, 4.0}) {
    const PairedDesign design{.deviation = deviation};
    const std::size_t different = pairs_for_different(design).value(),
                      equivalent = pairs_for_equivalent(design).value();
    EXPECT_GE(chance_of_different(design, 2, different), 0.8);
    EXPECT_LT(different > 2 ? chance_of_different(design, 2, different - 1) : 0, 0.8);
    EXPECT_GE(chance_of_equivalent(design, 0, equivalent), 0.8);
    EXPECT_LT(equivalent > 2 ? chance_of_equivalent(design, 0, equivalent - 1) : 0, 0.8);
  }
  EXPECT_FALSE(pairs_for_equivalent({.deviation = 1000}).has_value());
}

}  // namespace
}  // namespace headscope
