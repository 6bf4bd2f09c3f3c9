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
    figure.data[0].name = bad;
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

}  // namespace
}  // namespace headscope
