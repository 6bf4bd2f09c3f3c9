#include "heads/figures/surgery_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "figures/figure_files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using headscope::test::expect_error;
using headscope::test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Shape {
  std::vector<std::string> by = {"gain", "singular", "random", "tensor", "channel"};
  std::size_t points = 11;
  std::int64_t repeats = 5;
  double unmodified = 0.8, uniform = 1.9;
  std::string order = "smallest";
  bool dark = false;
};

SurgeryLosses losses_of(const Shape& shape) {
  Texts method, by, order;
  Numbers share, loss, change;
  Integers bits, repeat;
  const auto add = [&](const std::string& how, double at, std::int64_t bit, std::int64_t again, double value) {
    const bool remove = bit == 0;
    method.emplace_back(remove ? "remove" : "quantise");
    by.push_back(how);
    order.push_back(!remove ? "" : how == "random" ? "random" : shape.order);
    share.push_back(remove ? at : std::nan(""));
    bits.push_back(bit);
    repeat.push_back(again);
    loss.push_back(value);
    change.push_back(value - shape.unmodified);
  };
  const double lost = shape.uniform - shape.unmodified;
  for (std::size_t kind = 0; kind < shape.by.size(); ++kind) {
    const std::string& how = shape.by[kind];
    if (how == "tensor" || how == "channel") {
      for (const std::int64_t bit : {8, 6, 4, 3})
        add(how, 0, bit, 0,
            shape.unmodified + lost * std::pow(4.0, static_cast<double>(-bit)) * (how == "tensor" ? 9 : 3));
      continue;
    }
    for (std::int64_t again = 0; again < (how == "random" ? shape.repeats : 1); ++again)
      for (std::size_t i = 0; i < shape.points; ++i) {
        const double at = shape.points == 1 ? 0 : static_cast<double>(i) / static_cast<double>(shape.points - 1);
        const double bend = how == "singular" ? 4 : how == "gain" ? 2 : 1 + 0.1 * static_cast<double>(again);
        add(how, at, 0, again, shape.unmodified + lost * std::pow(at, bend));
      }
  }
  SurgeryLosses losses{shape.unmodified, shape.uniform, Table("surgery")};
  losses.rows.add("method", method).add("by", by).add("order", order).add("share_removed", share).add("bits", bits);
  losses.rows.add("repeat", repeat).add("loss", loss).add("loss_change", change);
  return losses;
}

TEST(SurgeryCurves, AreMeansAndRangesOverRepeatsInOrderOfX) {
  const auto curves = surgery_curves(losses_of({.points = 3, .repeats = 2}).rows, "remove");
  ASSERT_EQ(curves.size(), 3U);
  const SurgeryCurve& random = curves[2];
  EXPECT_EQ(random.by, "random");
  EXPECT_EQ(random.repeats, 2U);
  EXPECT_THAT(random.x, ElementsAre(0, 0.5, 1));
  const double one = 0.8 + 1.1 * 0.5, two = 0.8 + 1.1 * std::pow(0.5, 1.1);
  EXPECT_DOUBLE_EQ(random.loss[1], (one + two) / 2);
  EXPECT_DOUBLE_EQ(random.lowest[1], two);
  EXPECT_DOUBLE_EQ(random.highest[1], one);
  EXPECT_EQ(random.loss[0], 0.8);  // equal values: exactly
  const auto rounded = surgery_curves(losses_of({}).rows, "quantise");
  ASSERT_EQ(rounded.size(), 2U);
  EXPECT_THAT(rounded[0].x, ElementsAre(3, 4, 6, 8));
}

// Every run, however thin, must draw without a word from gnuplot.
class EverySurgery : public ::testing::TestWithParam<std::pair<const char*, Shape>> {};
INSTANTIATE_TEST_SUITE_P(
    SurgeryFigures, EverySurgery,
    ::testing::Values(std::pair{"Whole", Shape{}}, std::pair{"Dark", Shape{.order = "largest", .dark = true}},
                      std::pair{"Nothing", Shape{.by = {}}}, std::pair{"OnlyRemoval", Shape{.by = {"random"}}},
                      std::pair{"OnlyRounding", Shape{.by = {"channel"}}}, std::pair{"OnePoint", Shape{.points = 1}},
                      std::pair{"OneRepeat", Shape{.repeats = 1}}, std::pair{"NothingLost", Shape{.uniform = 0.8}},
                      std::pair{"LessThanUniform", Shape{.uniform = 0.7}},
                      std::pair{"NotFinite", Shape{.uniform = std::nan("")}},
                      std::pair{"Huge", Shape{.unmodified = 3e5, .uniform = 1e300}}),
    [](const auto& shape) { return shape.param.first; });

TEST_P(EverySurgery, DrawsWithoutWarnings) {
  const Shape shape = GetParam().second;
  const Theme& theme = shape.dark ? dark_theme() : light_theme();
  const TemporaryFolder folder;
  const auto figures = surgery_figures("tiny QK, step 150", losses_of(shape));
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(draw(figures, folder.path(), theme).warnings, "");
  for (const char* name : {"surgery_removal", "surgery_quantisation"})
    EXPECT_EQ(png_size(folder.path() / (std::string(name) + ".png")).first, 1600U) << name;
}

TEST(SurgeryFigures, DataAreTheValuesThatWereGiven) {
  const TemporaryFolder folder;
  draw(surgery_figures("tiny QK, step 150", losses_of({.points = 3})), folder.path(), light_theme());
  const auto gain = columns_of(folder.path() / "surgery_removal.gain.dat");
  EXPECT_THAT(gain.at("removed"), ElementsAre("0", "50", "100"));
  EXPECT_DOUBLE_EQ(numbers_of(gain.at("loss"))[1], 0.8 + 1.1 * 0.25);
  EXPECT_FALSE(gain.contains("lowest"));
  const auto random = columns_of(folder.path() / "surgery_removal.random.dat");
  EXPECT_DOUBLE_EQ(numbers_of(random.at("highest"))[1], 0.8 + 1.1 * 0.5);
  EXPECT_THAT(columns_of(folder.path() / "surgery_quantisation.channel.dat").at("bits"),
              ElementsAre("3", "4", "6", "8"));
}

TEST(SurgeryFigures, TicsStandAtTheBitsThatWereMeasured) {
  const Figure figure = completed(surgery_figures("", losses_of({}))[1]);
  std::vector<std::string> tics;
  for (const Tic& tic : figure.panels.at(0).x.tics) tics.push_back(tic.text);
  EXPECT_THAT(tics, ElementsAre("3", "4", "6", "8"));
}

TEST(SurgeryFigures, SayWhatWentFirstAndWhatTheLinesAre) {
  const Figure removal = completed(surgery_figures("tiny QK, step 150", losses_of({.order = "largest"}))[0]);
  EXPECT_THAT(legend_of(removal),
              ElementsAre("largest gain first", "largest singular value first", "random (range of 5)"));
  const auto& labels = removal.panels.at(0).labels;
  ASSERT_EQ(labels.size(), 2U);
  EXPECT_THAT(labels[0].text, ElementsAre("unmodified", "0.800"));
  EXPECT_THAT(labels[1].text, ElementsAre("uniform", "attention", "1.900"));
  EXPECT_EQ(removal.panels[0].references.at(1).y, 1.9);
}

TEST(SurgeryFigures, AKindHasItsColourWhoeverElseIsThere) {
  EXPECT_EQ(marks_of(surgery_figures("tiny QK, step 150", losses_of({.by = {"random"}}))[0]).back().colour.index, 2U);
  EXPECT_EQ(marks_of(surgery_figures("tiny QK, step 150", losses_of({.by = {"channel"}}))[1]).back().colour.index, 1U);
}

// As the name of a variable in a script, this would run a command.
TEST(SurgeryFigures, ACommandInATableIsNotRun) {
  const TemporaryFolder folder;
  const SurgeryLosses losses = losses_of({.by = {"a = system(\"cd ..; touch run\"); b"}});
  try {
    draw(surgery_figures("", losses), folder.path(), light_theme());
    ADD_FAILURE() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::input);
    EXPECT_THAT(error.what(), HasSubstr("column 'by' holds 'a = system("));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "run"));
}

TEST(SurgeryFigures, NumbersBeyondTheAxesAreRefused) {
  const auto refuse = [](const char* column, double value, const std::string& message) {
    const Table rows = losses_of({}).rows;
    SurgeryLosses losses{1, 2, Table("surgery")};
    for (const char* name : {"method", "by", "order"}) losses.rows.add(name, rows.texts(name));
    for (const char* name : {"share_removed", "bits", "loss"}) {
      Numbers values = rows.numbers(name);
      if (name == std::string(column)) std::ranges::fill(values, value);
      losses.rows.add(name, values);
    }
    expect_error(Fault::input, message, [&] { surgery_figures("", losses); });
  };
  refuse("bits", 1e300, "column 'bits' holds 1e+300; expected a whole number from 1 to 64");
  refuse("bits", std::nan(""), "column 'bits' holds nan");
  refuse("bits", 3.5, "column 'bits' holds 3.5");
  refuse("share_removed", std::nan(""), "column 'share_removed' holds nan; expected 0 to 1");
  refuse("share_removed", -1, "column 'share_removed' holds -1");
}

}  // namespace
}  // namespace headscope
