#include "figures/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace headscope {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> texts_of(const Axis& axis) {
  std::vector<std::string> texts;
  for (const Tic& tic : axis.tics) texts.push_back(tic.text);
  return texts;
}

// An axis of this kind that shows these values.
Axis axis_of(Axis axis, std::initializer_list<double> values, int steps = 6) {
  Extent range;
  for (const double value : values) range.add(value);
  return fitted(std::move(axis), range, steps);
}
Axis unit_axis(std::initializer_list<double> values) {
  return axis_of({.kind = Axis::share}, values);
}
Axis count_axis(std::initializer_list<double> values) {
  return axis_of({.include = {0, 1}}, values);
}
Axis round_axis(std::initializer_list<double> values) {
  return axis_of({}, values);
}
Axis token_axis(std::initializer_list<double> values) {
  return axis_of({.kind = Axis::tokens}, values);
}
Axis integer_axis(double first, double last, int steps) {
  return axis_of({.kind = Axis::integers}, {first, last}, steps);
}
Axis around_axis(std::initializer_list<double> values, double middle, double least) {
  return axis_of({.kind = Axis::around, .middle = middle, .least = least}, values);
}

void expect_axis(const Axis& axis, double low, double high, double step) {
  // Ends are multiples of 0.05: a few roundings away from the decimal.
  EXPECT_NEAR(axis.low, low, 1e-12);
  EXPECT_NEAR(axis.high, high, 1e-12);
  ASSERT_GE(axis.tics.size(), 2u);
  for (std::size_t i = 1; i < axis.tics.size(); ++i) EXPECT_NEAR(axis.tics[i].at - axis.tics[i - 1].at, step, 1e-12);
}

TEST(UnitAxis, EndsAtRoundNumbersAroundTheValues) {
  expect_axis(unit_axis({0.42, 0.61}), 0.40, 0.65, 0.05);
  expect_axis(unit_axis({0.9812, 0.9894}), 0.98, 0.992, 0.002);  // and not 0.9 to 1
  expect_axis(unit_axis({0.03, 0.07}), 0.03, 0.07, 0.01);
}

TEST(UnitAxis, ShowsTheWholeRangeWhenValuesTakeMostOfIt) {
  expect_axis(unit_axis({0.2, 0.8}), 0, 1, 0.2);
}

TEST(UnitAxis, EqualValuesGetARangeAroundThem) {
  expect_axis(unit_axis({0.7, 0.7}), 0.694, 0.706, 0.002);
  expect_axis(unit_axis({1, 1}), 0.99, 1, 0.002);  // never beyond what plasticity can be
  expect_axis(unit_axis({0}), 0, 0.01, 0.002);
}

TEST(UnitAxis, WithoutValuesIsZeroToOne) {
  expect_axis(unit_axis({}), 0, 1, 0.2);
  expect_axis(unit_axis({std::nan("")}), 0, 1, 0.2);
}

TEST(RoundAxis, OfCountsStartsAtZero) {
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
  for (const auto& values : std::initializer_list<std::initializer_list<double>>{{},
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
    EXPECT_LT(axis.low, axis.high);
    EXPECT_TRUE(axis.tics.size() >= 2 && axis.tics.size() <= 9) << axis.tics.size();
    for (const Tic& tic : axis.tics) EXPECT_TRUE(axis.low <= tic.at && tic.at <= axis.high) << tic.text;
    for (const double value : values) {
      if (std::fabs(value) < 1e100) {
        EXPECT_TRUE(axis.low <= value && value <= axis.high) << value;
      }
    }
  }
}

TEST(UnitAxis, EndsOfIntervalsBeyondZeroAndOneAreCutOff) {
  expect_axis(unit_axis({-0.2, 1.3}), 0, 1, 0.2);
  expect_axis(unit_axis({0.72, 1.04}), 0.7, 1, 0.1);
}

TEST(IntegerAxis, HasAtMostSoManySteps) {
  EXPECT_THAT(texts_of(integer_axis(0, 0, 10)), ElementsAre("0"));
  expect_axis(integer_axis(0, 29, 10), -0.5, 29.5, 5);
  expect_axis(integer_axis(0, 1151, 6), -0.5, 1151.5, 200);
  EXPECT_THAT(texts_of(integer_axis(-7, 31, 1)), ElementsAre("−7", "31"));
}

TEST(DoublingAxis, HasTicsAtPowersOfTwo) {
  const Axis axis = axis_of({.kind = Axis::doubling}, {1, 20});
  EXPECT_TRUE(axis.log && axis.low > 0 && axis.low < 1 && axis.high > 20);
  EXPECT_THAT(texts_of(axis), ElementsAre("1", "2", "4", "8", "16"));
  const Axis below = axis_of({.kind = Axis::doubling}, {0.2, 5});
  EXPECT_TRUE(below.low > 0 && below.low < 0.125 && below.high > 5);
  EXPECT_THAT(texts_of(below), ElementsAre("0.125", "0.25", "0.5", "1", "2", "4"));
  EXPECT_GT(axis_of({.kind = Axis::doubling}, {-3, 5}).low, 0);
}

TEST(DoublingAxis, HasFewTicsHoweverFarItGoes) {
  EXPECT_EQ(texts_of(axis_of({.kind = Axis::doubling}, {1, 511})).size(), 9u);
  EXPECT_THAT(texts_of(axis_of({.kind = Axis::doubling}, {1, 512})), ElementsAre("1", "4", "16", "64", "256"));
  EXPECT_THAT(texts_of(axis_of({.kind = Axis::doubling}, {0.2, 100})), ElementsAre("0.25", "1", "4", "16", "64"));
  EXPECT_THAT(texts_of(axis_of({.kind = Axis::doubling}, {1, 1e10})),
              ElementsAre("1", "16", "256", "4096", "65536", "1048576", "16777216", "268435456", "4294967296"));
  EXPECT_LE(texts_of(axis_of({.kind = Axis::doubling}, {1, 1e100})).size(), 9u);
}

TEST(Axis, IncludesWhatItMustIsPaddedAndKeepsTheTicsThatAreGiven) {
  const Axis axis = axis_of({.padding = 0.02, .include = {0, 100}}, {40, 60});
  expect_axis(axis, -2, 102, 20);
  EXPECT_THAT(texts_of(axis_of({.kind = Axis::integers, .tics = {{1, "L0H1"}}}, {1, 9})), ElementsAre("L0H1"));
  EXPECT_EQ(fitted(axis, {0, 1000}).high, 102);  // it is fixed
}

TEST(IntegerAxis, HasTicsAtMultiplesOfTheStep) {
  const Axis axis = integer_axis(3, 31, 8);
  EXPECT_EQ(axis.low, 2.5);
  EXPECT_EQ(axis.high, 31.5);
  EXPECT_THAT(texts_of(axis), ElementsAre("5", "10", "15", "20", "25", "30"));
}

TEST(AroundAxis, ReachesAsFarOnEachSideAsTheValues) {
  const Axis axis = around_axis({0.94, 1.5, std::nan("")}, 1, 0.01);
  EXPECT_DOUBLE_EQ(axis.low, 0.9);  // not 0.4: nothing lies there
  EXPECT_DOUBLE_EQ(axis.high, 1.5);
  EXPECT_THAT(texts_of(axis), ElementsAre("1", "1.2", "1.4"));
  EXPECT_THAT(texts_of(around_axis({0, 0.2}, 0, 0.03)), ElementsAre("0", "0.1", "0.2"));
  EXPECT_THAT(texts_of(around_axis({}, 0, 0.03)), ElementsAre("−0.03", "−0.02", "−0.01", "0", "0.01", "0.02", "0.03"));
}

TEST(TokenAxis, CountsInTheUnitOfTheWholeRun) {
  EXPECT_THAT(token_axis({0, 600}).label, ElementsAre("tokens"));
  EXPECT_THAT(token_axis({0, 0.6e6}).label, ElementsAre("tokens (thousand)"));
  EXPECT_THAT(token_axis({0, 4e6}).label, ElementsAre("tokens (M)"));
  EXPECT_THAT(token_axis({0, 3e10}).label, ElementsAre("tokens (B)"));
}

TEST(TokenAxis, NumbersAreUnitsAtPlacesInTokens) {
  const Axis axis = token_axis({0, 610304});
  EXPECT_EQ(axis.low, 0);
  EXPECT_EQ(axis.high, 610304);
  EXPECT_THAT(texts_of(axis), ElementsAre("0", "200", "400", "600"));
  EXPECT_EQ(axis.tics[1].at, 200000);
}

TEST(TokenAxis, EndsAtARoundNumberThatIsNear) {
  EXPECT_EQ(token_axis({0, 9.9e6}).high, 1e7);
  EXPECT_EQ(token_axis({0, 8.5e6}).high, 8.5e6);
}

TEST(TokenAxis, OneMomentIsOneTic) {
  EXPECT_THAT(texts_of(token_axis({2e6, 2e6})), ElementsAre("2"));
  EXPECT_THAT(texts_of(token_axis({0})), ElementsAre("0"));
  for (const double tokens : {-9e18, 0.0, 9e18}) EXPECT_LT(token_axis({tokens}).low, token_axis({tokens}).high);
}

TEST(TokenAxis, DecadesHaveTicsAtPowersOfTen) {
  const Axis axis = axis_of({.kind = Axis::updates, .decades_from = 8}, {0, 8, 16, 143000});
  EXPECT_TRUE(axis.log);
  EXPECT_EQ(axis.low, 8);
  EXPECT_EQ(axis.high, 143000);
  EXPECT_THAT(texts_of(axis), ElementsAre("10", "100", "1k", "10k", "100k"));
  EXPECT_EQ(axis.tics[2].at, 1000);
  EXPECT_THAT(axis.label, ElementsAre("updates"));
}

TEST(TokenAxis, TextsNameTheUnit) {
  EXPECT_EQ(token_text(1.5e6, 4e6), "1.5 M tokens");
  EXPECT_EQ(token_text(1657.4e6, 4e9), "1657 M tokens");
  EXPECT_EQ(token_text(0, 4e6), "0 tokens");
  EXPECT_EQ(token_text(512, 512), "512 tokens");
}

}  // namespace
}  // namespace headscope
