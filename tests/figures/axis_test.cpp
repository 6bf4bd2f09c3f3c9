#include "figures/axis.h"

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

TEST(RoundAxis, EndsAtHalfStepsAroundTheValues) {
  expect_axis(round_axis({51.3, 86.8}), 50, 90, 10);
  expect_axis(round_axis({38.4, 77.2}), 35, 80, 10);
  expect_axis(round_axis({-7.2, 21}), -7.5, 22.5, 5);
  expect_axis(round_axis({0.0031, 0.0148}), 0.003, 0.015, 0.002);
}

TEST(RoundAxis, AnyValuesGiveARangeThatCanBeDrawn) {
  const double huge = 1.7e308, tiny = 5e-324;
  for (const std::vector<double>& values : std::vector<std::vector<double>>{{},
                                                                            {std::nan("")},
                                                                            {0},
                                                                            {65.7, 65.7},
                                                                            {65.7, std::nextafter(65.7, 66)},
                                                                            {-3, -3},
                                                                            {huge, -huge, 5},
                                                                            {huge},
                                                                            {tiny},
                                                                            {1e99, -1e99},
                                                                            {1e-99}}) {
    const Axis axis = round_axis(values);
    EXPECT_TRUE(std::isfinite(axis.low) && std::isfinite(axis.high));
    EXPECT_LT(axis.low + axis.step, axis.high * (1 + 1e-9) + axis.step * 0.01);
    EXPECT_LE((axis.high - axis.low) / axis.step, 9);
    for (const double value : values) {
      if (std::fabs(value) < 1e100) {
        EXPECT_TRUE(axis.low <= value && value <= axis.high) << value;
      }
    }
  }
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
