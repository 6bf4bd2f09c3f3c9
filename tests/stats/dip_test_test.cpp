#include "stats/dip_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.h"
#include "stats/oracle.h"

namespace headscope {
namespace {

using Values = std::vector<double>;

Values uniform_sample(std::size_t n, std::uint64_t seed) {
  NumpyGenerator generator(seed);
  Values values(n);
  for (double& value : values) value = generator.uniform();
  return values;
}

TEST(Dip, IsTheDistanceFromTheNearestUnimodalDistribution) {
  for (const auto& one : test::stats_oracle("dip"))
    // The reference solves linear programs with a tolerance of 1e-7.
    EXPECT_NEAR(dip_statistic(one.at("values").get<Values>()), one.at("dip").get<double>(), 1e-7) << one.dump();
}

TEST(Dip, OfEquallySpacedValuesIsHalfAStep) {
  for (const std::size_t n : {4, 7, 100, 1001}) {
    Values values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<double>(i);
    EXPECT_NEAR(dip_statistic(values), 0.5 / static_cast<double>(n), 1e-12) << n;
  }
}

TEST(Dip, OfTwoFarAndEqualGroupsApproachesAQuarter) {
  // Each group of m equal values 0 and 1: no unimodal function follows two jumps of 1/2.
  EXPECT_DOUBLE_EQ(dip_statistic(Values{0, 0, 0, 0, 1, 1, 1, 1}), 0.25);
}

TEST(Dip, DoesNotChangeWithOrderScaleOrMirror) {
  const Values values = uniform_sample(50, 1);
  const double dip = dip_statistic(values);
  Values reversed(values.rbegin(), values.rend()), scaled = values, mirrored = values;
  for (double& value : scaled) value = 3 * value + 7;
  for (double& value : mirrored) value = -value;
  EXPECT_EQ(dip_statistic(reversed), dip);
  EXPECT_NEAR(dip_statistic(scaled), dip, 1e-12);
  EXPECT_NEAR(dip_statistic(mirrored), dip, 1e-12);
}

TEST(Dip, SaysNothingOfFewOrUnknownValuesAndIsZeroWithoutSpread) {
  EXPECT_TRUE(std::isnan(dip_statistic(Values{1, 2, 3})));
  EXPECT_TRUE(std::isnan(dip_statistic(Values{1, 2, 3, 4, std::numeric_limits<double>::quiet_NaN()})));
  EXPECT_EQ(dip_statistic(Values{2, 2, 2, 2, 2}), 0);
}

TEST(DipTest, TellsTwoPopulationsFromOne) {
  DipTester tester;
  Values two = uniform_sample(40, 2);
  for (std::size_t i = 0; i < 20; ++i) two[i] += 4;
  EXPECT_LT(tester.test(two).p_value, 0.001);
  EXPECT_GT(tester.test(uniform_sample(40, 3)).p_value, 0.05);
  EXPECT_EQ(tester.test(Values{2, 2, 2, 2}).p_value, 1);
  EXPECT_TRUE(std::isnan(tester.test(Values{1, 2, 3}).p_value));
}

TEST(DipTest, RejectsAUniformSampleAsOftenAsItSays) {
  DipTester tester;
  int rejected = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed)
    rejected += tester.test(uniform_sample(12, 5000 + seed)).p_value < 0.05;
  // Binomial(1000, 0.05) and the simulated quantile: a standard deviation of 8.5; five of them.
  EXPECT_NEAR(rejected, 50, 43);
}

TEST(DipTest, HasThePublishedQuantiles) {
  struct Published {
    std::size_t n;
    double median, upper;  // exceeded with probability 0.5 and 0.05: M. Maechler's table qDiptab (R package diptest)
  };
  for (const Published& table : {Published{4, 0.125, 0.2073}, {10, 0.0978, 0.1396}, {50, 0.0489, 0.0703}}) {
    Values dips;
    for (std::uint64_t seed = 0; seed < 10000; ++seed) dips.push_back(dip_statistic(uniform_sample(table.n, seed)));
    std::ranges::sort(dips);
    // At least four standard errors of a quantile of 10000 draws.
    EXPECT_NEAR(dips[5000], table.median, 0.015 * table.median) << table.n;
    EXPECT_NEAR(dips[9500], table.upper, 0.02 * table.upper) << table.n;
  }
}

TEST(DipTest, DoesNotDependOnWhatWasAskedBefore) {
  DipTester fresh(7), used(7);
  static_cast<void>(used.test(uniform_sample(9, 1)));
  const Values values = uniform_sample(12, 4);
  EXPECT_EQ(fresh.test(values).p_value, used.test(values).p_value);
  EXPECT_EQ(used.test(values).n, 12U);
}

}  // namespace
}  // namespace headscope
