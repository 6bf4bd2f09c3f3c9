#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "figures/figure_files.h"
#include "figures/render.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using headscope::test::expect_error;
using headscope::test::TemporaryFolder;

TEST(Data, AreTabSeparatedWithNaNForMissing) {
  EXPECT_EQ(to_dat(line_figure("line").data[0].table), "x\ty\tname\n1\t0.5\ta\n2\tNaN\tb c\n3\t2\td\n");
}

// A row that begins with # would be a comment; a cell that begins with " would go on to the next ".
TEST(Data, TextsCannotBeReadAsAnythingElse) {
  Table table("texts");
  table.add("text", Texts{"#1", " # 2", "\"a", "b\tc", "d\ne", "`f`", "%g", std::string("h\0i", 3)});
  EXPECT_EQ(to_dat(table), "text\n\"#1\"\n\" # 2\"\n'a\nb c\nd e\n`f`\n%g\nh i\n");
}

TEST(Names, OfDataAreOursAndNothingThatScriptsUseAlready) {
  for (const char* bad :
       {"", "a b", "a;b", "gain'", "a = system(\"x\"); b", "2nd", "_a", "ink", "category3", "for", "format", "x"}) {
    Figure figure = line_figure("line");
    figure.data[0].name = figure.panels[0].marks[0].data = bad;
    expect_error(Fault::runtime, "name = ", [&] { script_of(figure); });
    const TemporaryFolder folder;
    EXPECT_THROW(draw(figure, folder.path(), light_theme()), Error);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
  Figure twice = line_figure("line");
  twice.data.push_back(twice.data[0]);
  expect_error(Fault::runtime, "data name = 'line'", [&] { script_of(twice); });
}

TEST(Names, OfMarksAreThoseOfTheFigure) {
  Figure figure = line_figure("line");
  figure.panels[0].marks[0].data = "other";
  expect_error(Fault::runtime, "no data 'other'", [&] { script_of(figure); });
}

TEST(Names, OfFiguresAndColumnsAreOurs) {
  for (const char* bad : {"", "../a", "a b", "-a", "a'", "a\n"}) {
    expect_error(Fault::runtime, "name = ", [&] { script_of(line_figure(bad)); });
    Table table("columns");
    table.add(bad, Integers{1});
    expect_error(Fault::runtime, "name = ", [&] { to_dat(table); });
  }
  const std::vector<Figure> twice = {line_figure("line"), line_figure("line")};
  const TemporaryFolder folder;
  expect_error(Fault::runtime, "two figures are named line", [&] { draw(twice, folder.path(), light_theme()); });
}

TEST(Completed, AMarkWithoutValuesIsLeftOutWithItsPanelAndItsTable) {
  Figure figure = line_figure("line");
  Table empty("empty");
  empty.add("x", Integers{1, 2}).add("y", Numbers{std::nan(""), 1e300});  // no measurement is as large
  figure.data.push_back({"empty", empty});
  figure.panels.push_back(figure.panels[0]);
  figure.panels[1].marks = {Mark::line("empty", "x", "y").named("nothing")};
  const Figure whole = completed(figure);
  EXPECT_EQ(whole.panels.size(), 1u);
  EXPECT_EQ(whole.data.size(), 1u);
  EXPECT_THAT(legend_of(figure), ::testing::ElementsAre("a line"));
}

TEST(Completed, AFigureWithoutValuesSaysSoAndHasNoData) {
  Figure figure = line_figure("line");
  figure.panels[0].marks[0].rows = {1, 1};  // the row without a value
  EXPECT_TRUE(completed(figure).panels.empty() && completed(figure).data.empty());
  EXPECT_THAT(script_of(figure), ::testing::HasSubstr("'no values'"));
  figure.nothing = "not measured";
  EXPECT_THAT(script_of(figure), ::testing::HasSubstr("'not measured'"));
}

TEST(Completed, AxesShowWhatTheMarksReadAndTheReferences) {
  Figure figure = line_figure("line");
  figure.panels[0].x.include = figure.panels[0].y.include = {};
  figure.panels[0].references = {{.y = 7, .name = {"seven"}}, {.y = std::nan(""), .name = {"none"}}};
  const Panel panel = completed(figure).panels[0];
  EXPECT_EQ(panel.x.low, 0.5);
  EXPECT_EQ(panel.x.high, 3.5);
  EXPECT_EQ(panel.y.low, 0);
  EXPECT_EQ(panel.y.high, 7);
  ASSERT_EQ(panel.labels.size(), 1u);
  EXPECT_THAT(panel.labels[0].text, ::testing::ElementsAre("seven"));
}

TEST(Completed, PanelsOfAGroupHaveOneRange) {
  Figure figure = line_figure("line");
  figure.panels[0].y.include = {};
  figure.panels.resize(3, figure.panels[0]);
  figure.panels[1].y.include = {0, 10};
  figure.panels[2].marks[0].rows = {0, 0};
  figure.panels[2].y.group = 1;
  const Figure whole = completed(figure);
  EXPECT_EQ(whole.panels[0].y.high, 10);
  EXPECT_EQ(whole.panels[1].y.high, 10);
  EXPECT_LT(whole.panels[2].y.high, 0.6);
}

TEST(Completed, ADiagonalGivesBothAxesOneRange) {
  Figure figure = line_figure("line");
  figure.panels[0] = {.marks = figure.panels[0].marks, .references = {{.diagonal = true}}};
  const Panel panel = completed(figure).panels[0];
  EXPECT_EQ(panel.x.low, panel.y.low);
  EXPECT_EQ(panel.x.high, 3);
  EXPECT_EQ(panel.y.high, 3);
}

TEST(Completed, AScaleThatNoMarkReadsIsLeftOut) {
  Figure figure = line_figure("line");
  figure.colours = {ColourScale::ordered, {.kind = Axis::integers}};
  EXPECT_FALSE(completed(figure).colours);
  figure.panels[0].marks[0].colour = by_column("x");
  EXPECT_EQ(completed(figure).colours->axis.high, 3.5);
}

}  // namespace
}  // namespace headscope
