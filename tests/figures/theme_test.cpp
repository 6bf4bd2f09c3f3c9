#include "figures/theme.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "core/error.h"

namespace headscope {
namespace {

using Colour = std::array<double, 3>;

Colour linear_rgb(const std::string& colour) {
  Colour rgb{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double c = std::stoi(colour.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    rgb[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  return rgb;
}

// CIE L*a*b* under D65.
Colour lab(const Colour& rgb) {
  const auto f = [](double t) { return t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116; };
  const double x = f((0.4124 * rgb[0] + 0.3576 * rgb[1] + 0.1805 * rgb[2]) / 0.95047);
  const double y = f(0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]);
  const double z = f((0.0193 * rgb[0] + 0.1192 * rgb[1] + 0.9505 * rgb[2]) / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

// What an eye without red or green cones sees (Viénot, Brettel and Mollon 1999).
Colour seen_by(bool protanope, const Colour& rgb) {
  const double mixed = protanope ? 0.11238 * rgb[0] + 0.88762 * rgb[1] : 0.29275 * rgb[0] + 0.70725 * rgb[1];
  const double blue =
      protanope ? 0.00401 * rgb[0] - 0.00401 * rgb[1] + rgb[2] : -0.02234 * rgb[0] + 0.02234 * rgb[1] + rgb[2];
  return {mixed, mixed, blue};
}

double distance(const Colour& a, const Colour& b) {
  return std::sqrt(std::pow(a[0] - b[0], 2) + std::pow(a[1] - b[1], 2) + std::pow(a[2] - b[2], 2));
}

class EveryTheme : public testing::TestWithParam<const char*> {
 protected:
  const Theme& theme = theme_named(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Theme, EveryTheme, testing::Values("light", "dark"));

TEST_P(EveryTheme, TextIsLegible) {
  EXPECT_GE(contrast(theme.ink, theme.paper), 7.0);    // WCAG AAA
  EXPECT_GE(contrast(theme.muted, theme.paper), 3.0);  // WCAG: graphical objects
}

TEST_P(EveryTheme, SequentialColoursGetLighterAllTheWay) {
  for (int i = 1; i <= 100; ++i)
    EXPECT_GT(luminance(colour_at(theme.sequential, i / 100.0)),
              luminance(colour_at(theme.sequential, (i - 1) / 100.0)));
}

TEST_P(EveryTheme, LinesOfEveryLayerStandOutFromThePaper) {
  for (const std::string& colour : theme.ordered) EXPECT_GE(contrast(colour, theme.paper), 1.5) << colour;
}

TEST_P(EveryTheme, DivergingColoursLeaveThePaperOnBothSides) {
  const std::size_t middle = theme.diverging.size() / 2;
  EXPECT_EQ(theme.diverging.size() % 2, 1u);
  EXPECT_LT(contrast(theme.diverging[middle], theme.paper), 1.2);
  for (std::size_t i = 1; i <= middle; ++i) {
    EXPECT_GT(contrast(theme.diverging[middle - i], theme.paper),
              contrast(theme.diverging[middle - i + 1], theme.paper));
    EXPECT_GT(contrast(theme.diverging[middle + i], theme.paper),
              contrast(theme.diverging[middle + i - 1], theme.paper));
  }
}

TEST_P(EveryTheme, CategoriesDifferForColourBlindEyes) {
  // 2.3 is a just noticeable difference; three times that can be told apart in a legend.
  for (const bool protanope : {true, false})
    for (std::size_t i = 0; i < theme.categories.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        EXPECT_GT(distance(lab(seen_by(protanope, linear_rgb(theme.categories[i]))),
                           lab(seen_by(protanope, linear_rgb(theme.categories[j])))),
                  7.0)
            << theme.categories[i] << " " << theme.categories[j];
}

// Blue, green and red, as in seed 002; told apart by everyone.
TEST_P(EveryTheme, ColoursOfDepthStandOutFromThePaperAndDifferForColourBlindEyes) {
  for (std::size_t i = 0; i < theme.depth.size(); ++i) {
    EXPECT_GE(contrast(theme.depth[i], theme.paper), 3.0) << theme.depth[i];  // WCAG: graphical objects
    for (const bool protanope : {true, false})
      for (std::size_t j = 0; j < i; ++j)
        EXPECT_GT(distance(lab(seen_by(protanope, linear_rgb(theme.depth[i]))),
                           lab(seen_by(protanope, linear_rgb(theme.depth[j])))),
                  20.0)
            << theme.depth[i] << " " << theme.depth[j];
  }
}

TEST_P(EveryTheme, CellsWithoutAValueHaveAColourOfTheirOwn) {
  for (int i = 0; i <= 100; ++i)
    EXPECT_GT(distance(lab(linear_rgb(theme.absent)), lab(linear_rgb(colour_at(theme.sequential, i / 100.0)))), 20)
        << i;
}

TEST(Theme, ColoursBetweenTwoAreMixed) {
  EXPECT_EQ(colour_at({"#000000", "#ffffff"}, 0.5), "#808080");
  EXPECT_EQ(colour_at({"#000000", "#ff0000", "#ff00ff"}, 0.75), "#ff0080");
  EXPECT_EQ(colour_at({"#000000", "#ffffff"}, -1), "#000000");
  EXPECT_EQ(colour_at({"#000000", "#ffffff"}, 2), "#ffffff");
}

TEST(Theme, ContrastOfBlackAndWhiteIs21) {
  EXPECT_NEAR(contrast("#000000", "#ffffff"), 21, 1e-9);
}

TEST(Theme, UnknownNameIsAnInputErrorThatListsTheKnown) {
  try {
    theme_named("sepia");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::input);
    EXPECT_STREQ(error.what(), "unknown theme 'sepia'; known are light, dark");
  }
}

}  // namespace
}  // namespace headscope
