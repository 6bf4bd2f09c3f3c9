#include "figures/theme.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "core/error.h"
#include "figures/figure_files.h"

namespace headscope {
namespace {

using Rgb = std::array<double, 3>;

Rgb linear_rgb(const std::string& colour) {
  Rgb rgb{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double c = std::stoi(colour.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    rgb[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  return rgb;
}

// CIE L*a*b* under D65.
Rgb lab(const Rgb& rgb) {
  const auto f = [](double t) { return t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116; };
  const double x = f((0.4124 * rgb[0] + 0.3576 * rgb[1] + 0.1805 * rgb[2]) / 0.95047);
  const double y = f(0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]);
  const double z = f((0.0193 * rgb[0] + 0.1192 * rgb[1] + 0.9505 * rgb[2]) / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

// What an eye without red or green cones sees (Viénot, Brettel and Mollon 1999).
Rgb seen_by(bool protanope, const Rgb& rgb) {
  const double mixed = protanope ? 0.11238 * rgb[0] + 0.88762 * rgb[1] : 0.29275 * rgb[0] + 0.70725 * rgb[1];
  const double blue =
      protanope ? 0.00401 * rgb[0] - 0.00401 * rgb[1] + rgb[2] : -0.02234 * rgb[0] + 0.02234 * rgb[1] + rgb[2];
  return {mixed, mixed, blue};
}

double distance(const Rgb& a, const Rgb& b) {
  return std::sqrt(std::pow(a[0] - b[0], 2) + std::pow(a[1] - b[1], 2) + std::pow(a[2] - b[2], 2));
}

// The colour at `fraction` of colours at equal distances, linear in sRGB, as gnuplot interpolates.
std::string colour_at(const std::vector<std::string>& colours, double fraction) {
  const double place = fraction * static_cast<double>(colours.size() - 1);
  const std::size_t below = std::min(static_cast<std::size_t>(place), colours.size() - 2);
  std::string mixed = "#";
  for (std::size_t i = 1; i < 7; i += 2) {
    const double low = std::stoi(colours[below].substr(i, 2), nullptr, 16);
    const double high = std::stoi(colours[below + 1].substr(i, 2), nullptr, 16);
    mixed += fmt::format("{:02x}", std::lround(low + (high - low) * (place - static_cast<double>(below))));
  }
  return mixed;
}

// Relative luminance of WCAG 2 (0 black, 1 white) and the contrast of two colours (1 to 21).
double luminance(const std::string& colour) {
  const auto rgb = linear_rgb(colour);
  return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
}
double contrast(const std::string& one, const std::string& other) {
  const double a = luminance(one) + 0.05, b = luminance(other) + 0.05;
  return std::max(a, b) / std::min(a, b);
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

TEST_P(EveryTheme, TextOnACellHasTheColourThatStandsOut) {
  for (int i = 0; i <= 100; i += 4) {
    Figure figure = line_figure("line");
    figure.panels[0].marks[0].colour = by_column("x");
    figure.panels[0].labels = {
        {.text = {"here"}, .x = 2, .y = 1, .colour = {.role = Colour::readable, .value = i / 100.0}}};
    figure.colours = {ColourScale::sequential, {.kind = Axis::fixed}};
    const std::string cell = colour_at(theme.sequential, i / 100.0);
    const bool white = script_of(figure, theme).find("textcolor rgb '#ffffff'") != std::string::npos;
    EXPECT_GE(contrast(cell, white ? "#ffffff" : "#000000"), 4.5) << i;  // WCAG AA
  }
}

TEST_P(EveryTheme, OrderedColoursAreAPartOfTheSequentialOnes) {
  const bool light = theme.name == "light";  // yellow vanishes on white, dark violet on black
  for (std::size_t i = 0; i < theme.ordered.size(); ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(theme.ordered.size() - 1);
    const std::string part = colour_at(theme.sequential, light ? 0.88 * share : 0.3 + 0.7 * share);
    EXPECT_LT(distance(lab(linear_rgb(theme.ordered[i])), lab(linear_rgb(part))), 1) << i;  // one step of rounding
  }
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
