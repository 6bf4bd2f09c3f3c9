#include "report/axis.h"

#include <gtest/gtest.h>

#include <cmath>

namespace headscope {
namespace {

void expect_axis(const Axis& axis, double low, double high, double step) {
  // Ends are multiples of 0.05: a few roundings away from the decimal.
  EXPECT_NEAR(axis.low, low, 1e-12);
  EXPECT_NEAR(axis.high, high, 1e-12);
  EXPECT_NEAR(axis.step, step, 1e-12);
}

TEST(UnitAxis, EndsAtRoundNumbersAroundTheValues) {
  expect_axis(unit_axis({0.42, 0.61}), 0.40, 0.65, 0.05);
}

TEST(UnitAxis, ShowsTheWholeRangeWhenValuesTakeMostOfIt) {
  expect_axis(unit_axis({0.2, 0.8}), 0, 1, 0.2);
}

TEST(UnitAxis, EqualValuesGetARangeAroundThem) {
  expect_axis(unit_axis({0.7, 0.7}), 0.65, 0.75, 0.02);
  expect_axis(unit_axis({1, 1}), 0.9, 1, 0.02);  // never beyond what plasticity can be
  expect_axis(unit_axis({0}), 0, 0.1, 0.02);
}

TEST(UnitAxis, WithoutValuesIsZeroToOne) {
  expect_axis(unit_axis({}), 0, 1, 0.2);
  expect_axis(unit_axis({std::nan("")}), 0, 1, 0.2);
}

TEST(CountAxis, StartsAtZero) {
  expect_axis(count_axis({3.2, 47}), 0, 50, 10);
  expect_axis(count_axis({}), 0, 1, 0.2);
}

TEST(IntegerStep, GivesAtMostSoManySteps) {
  EXPECT_EQ(integer_step(0, 10), 1);
  EXPECT_EQ(integer_step(29, 10), 4);
  EXPECT_EQ(integer_step(1151, 6), 200);
}

TEST(IntegerAxis, HasTicsAtMultiplesOfTheStep) {
  const Axis axis = integer_axis(3, 31, 8);
  EXPECT_EQ(axis.low, 2.5);
  EXPECT_EQ(axis.high, 31.5);
  EXPECT_EQ(axis.first_tic, 4);
  EXPECT_EQ(axis.step, 4);
}

}  // namespace
}  // namespace headscope
