// The renderer's layout: nothing is cut off, no two texts overlap, room is made for what needs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "figures/every_figure.h"
#include "figures/figure_files.h"
#include "figures/render.h"
#include "figures/synthetic.h"
#include "heads/figures/synthetic_tracks.h"

namespace headscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Place box_of(const PlacedText& text) {
  const double width = text_width(text.text, text.font), height = text.font;
  const double before = text.align == PlacedText::left ? 0 : text.align == PlacedText::centre ? width / 2 : width;
  if (text.upright) return {text.x - height / 2, text.y - before, height, width};
  return {text.x - before, text.y - height / 2, width, height};
}

// Texts inside of the page and of none other, panels inside of the page.
void expect_tidy(const Figure& figure) {
  const Layout layout = lay_out(completed(figure));
  const double width = layout.width, height = layout.height;
  std::vector<Place> boxes;
  for (const Place& panel : layout.panels)
    EXPECT_TRUE(panel.left > 0 && panel.bottom > 0 && panel.right() < width && panel.top() < height &&
                panel.width > 40 && panel.height > 40)
        << figure.name;
  for (const PlacedText& text : layout.texts) {
    if (text.text.empty()) continue;
    const Place box = box_of(text);
    EXPECT_TRUE(box.left >= 0 && box.bottom >= 0 && box.right() <= width && box.top() <= height)
        << figure.name << ": " << text.text;
    for (const Place& other : boxes) EXPECT_FALSE(box.meets(other)) << figure.name << ": " << text.text;
    boxes.push_back(box);
  }
}

TEST(Layout, NoTextIsCutOffOrOverlapsAnother) {
  for (const std::string& text : {std::string("run"), std::string(5000, 'y')})
    for (const test::FigureKind& kind : test::figure_kinds())
      for (const Figure& figure :
           kind.figures({.title = text, .by = "", .order = "", .role = text, .run_1 = text, .run_2 = text}, {}))
        expect_tidy(figure);
}

TEST(Layout, OfLargeAndSmallModelsIsTidy) {
  for (const synthetic::Shape& shape :
       {synthetic::Shape{.layers = 36, .q_heads = 32, .intervals = true}, synthetic::Shape{.layers = 1, .q_heads = 1},
        synthetic::Shape{.layers = 2, .q_heads = 9, .missing = 0.3}}) {
    for (const Figure& figure : plasticity_figures(synthetic::tables(shape), {.per_head = true})) expect_tidy(figure);
    for (const Figure& figure : comparison_figures(synthetic::comparison(shape))) expect_tidy(figure);
  }
  for (const TrackShape& shape : {TrackShape{.layers = 36, .key_heads = 8, .query_heads = 32},
                                  TrackShape{.layers = 1, .moments = 1}, TrackShape{.layers = 5, .moments = 1}}) {
    const RunTracks tracks = synthetic_tracks(shape);
    for (const Figure& figure : tracking_figures({"a run", &tracks})) expect_tidy(figure);
  }
}

TEST(Layout, TheLeftMarginIsAsWideAsTheNumbers) {
  Figure figure = line_figure("line");
  const double before = lay_out(completed(figure)).panels[0].left;
  figure.panels[0].y.tics.push_back({1, "a very long number"});
  EXPECT_GT(lay_out(completed(figure)).panels[0].left,
            before + text_width("a very long number", 12) - text_width("0.5", 12) - 1);
}

TEST(Layout, ALegendGoesOverAsManyRowsAsItNeeds) {
  Figure figure = line_figure("line");
  const int before = lay_out(completed(figure)).height;
  for (int i = 0; i < 20; ++i)
    figure.panels[0].marks.push_back(figure.panels[0].marks[0].named(fmt::format("name {}", i)));
  const Layout layout = lay_out(completed(figure));
  EXPECT_GE(layout.height, before + 30);
  EXPECT_EQ(layout.legend.size(), 21u);
  expect_tidy(figure);
}

TEST(Layout, NumbersOfAGridStandAtTheLeftAndAtTheBottomOnly) {
  Figure figure = line_figure("line");
  figure.panels[0].x.tics = {{1, "left to right"}};
  figure.panels[0].y.tics = {{1, "upwards"}};
  figure.panels.resize(4, figure.panels[0]);
  figure.grid = {};
  const std::string script = script_of(figure);
  const auto count = [&](const std::string& text) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = script.find(text, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(count("('left to right' 1)"), 2u);
  EXPECT_EQ(count("('upwards' 1)"), 2u);
  EXPECT_EQ(count("('' 1)"), 4u);
}

TEST(Layout, LabelsBesideAPanelAreMovedApartAndStayInOrder) {
  Figure figure = line_figure("line");
  for (const char* name : {"low", "middle", "high"})
    figure.panels[0].labels.push_back({.text = {name}, .place = Label::beside, .y = 1});
  expect_tidy(figure);
  std::vector<PlacedText> texts = lay_out(completed(figure)).texts;
  std::ranges::sort(texts, {}, &PlacedText::y);
  std::vector<std::string> order;
  for (const PlacedText& text : texts)
    if (text.x > lay_out(completed(figure)).panels[0].right()) order.push_back(text.text);
  EXPECT_THAT(order, ElementsAre("low", "middle", "high"));
}

TEST(Layout, ALabelNearAPointGoesWhereItCoversNone) {
  Figure figure = line_figure("line");
  Table points("points");
  points.add("x", Numbers{2, 2.2}).add("y", Numbers{1, 1});  // right of the first point is another
  figure.data.push_back({"points", points});
  figure.panels[0].marks = {Mark::points("points", "x", "y")};
  figure.panels[0].labels = {{.text = {"L0H1"}, .place = Label::near, .x = 2, .y = 1}};
  const Layout layout = lay_out(completed(figure));
  const auto found = std::ranges::find(layout.texts, "L0H1", &PlacedText::text);
  ASSERT_NE(found, layout.texts.end());
  const Place& panel = layout.panels[0];
  EXPECT_LT(found->x, panel.left + position_on(completed(figure).panels[0].x, 2) * panel.width);
}

TEST(Render, ColoursAreThoseOfTheTheme) {
  Figure figure = line_figure("line");
  figure.panels[0].marks[0].colour = category(2);
  EXPECT_THAT(script_of(figure), HasSubstr("lc rgb category3"));
  EXPECT_THAT(script_of(figure, light_theme()), HasSubstr("category3 = '#009e73'"));
  EXPECT_THAT(script_of(figure, dark_theme()), HasSubstr("paper = '#15181c'"));
}

TEST(Render, AFewIntegersHaveAColourEachAndManyGoOverIntoEachOther) {
  Figure figure = line_figure("line");
  figure.panels[0].marks[0].colour = by_value(3);
  const auto layers = [](double first, double last) {
    return ColourScale{ColourScale::ordered, {.kind = Axis::integers, .label = {"layer"}, .include = {first, last}}};
  };
  figure.colours = layers(0, 3);
  const std::vector<std::string>& ordered = light_theme().ordered;
  EXPECT_THAT(script_of(figure), HasSubstr("set palette maxcolors 4 defined (0 '" + ordered.front() + "', 1 '"));
  EXPECT_THAT(script_of(figure), HasSubstr(", 3 '" + ordered.back() + "')\n"));
  EXPECT_THAT(script_of(figure), HasSubstr("lc palette cb 3"));
  EXPECT_GT(lay_out(completed(figure)).bar.width, 0);
  figure.colours = layers(0, 40);
  EXPECT_THAT(script_of(figure), HasSubstr("set palette maxcolors 0 "));
  figure.colours = layers(3, 3);  // one layer needs no bar
  EXPECT_EQ(lay_out(completed(figure)).bar.width, 0);
}

// Half as far below the middle as above it: the colours there are half as strong.
TEST(Render, ColoursOfDifferencesAreAsStrongBelowTheMiddleAsAbove) {
  Figure figure = line_figure("line");
  figure.panels[0].marks[0].colour = by_value(0);
  figure.colours = {ColourScale::diverging, {.kind = Axis::around, .include = {-0.1, 0.2}, .least = 0.01}};
  const std::vector<std::string>& colours = light_theme().diverging;  // 11: the sixth is the middle
  // 21 places from -0.1 to 0.2. Place 0 is a quarter of the way from -0.2 to 0.2, between the third and fourth colour.
  EXPECT_EQ(std::pair(colours[2], colours[3]), std::pair(std::string("#4393c3"), std::string("#92c5de")));
  EXPECT_THAT(script_of(figure), HasSubstr("defined (0 '#6bacd1', 1 "));
  EXPECT_THAT(script_of(figure), HasSubstr(", 20 '" + colours.back() + "')\nset cbrange [-0.1:0.2]"));
  figure.colours->axis.include = {-0.2, 0.2};
  EXPECT_THAT(script_of(figure), HasSubstr("defined (0 '" + colours.front() + "', 1 "));
  EXPECT_THAT(script_of(figure), HasSubstr(", 10 '" + colours[5] + "', "));
}

TEST(Render, AnIntervalStandsUprightInTheLegend) {
  Figure figure = line_figure("line");
  figure.kinds = {Mark::segment("", "", "low", "high").named("interval")};
  const LegendEntry entry = lay_out(completed(figure)).legend.at(1);
  EXPECT_THAT(script_of(figure), HasSubstr(fmt::format("set arrow from {0:.2f},{1:.2f} to {0:.2f},{2:.2f} nohead",
                                                       entry.x + 8, entry.y - 5, entry.y + 5)));
}

TEST(Render, ASingleValueOfALineIsAPoint) {
  Figure figure = line_figure("line");
  figure.data[0].table = Table("line");
  figure.data[0].table.add("x", Integers{1, 2}).add("y", Numbers{std::nan(""), 2});
  EXPECT_THAT(script_of(figure), HasSubstr("line using \"x\":\"y\" with points"));
}

}  // namespace
}  // namespace headscope
