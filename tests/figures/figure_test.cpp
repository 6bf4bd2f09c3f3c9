#include "figures/figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "figures/figure_files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using headscope::test::expect_error;
using headscope::test::TemporaryFolder;
using ::testing::HasSubstr;

TEST(Data, AreTabSeparatedWithNaNForMissing) {
  EXPECT_EQ(to_dat(line_figure("line").data[0].table), "x\ty\tname\n1\t0.5\ta\n2\tNaN\tb c\n3\t2\td\n");
}

// A row that begins with # would be a comment; a cell that begins with " would go on to the next ".
TEST(Data, TextsCannotBeReadAsAnythingElse) {
  Table table("texts");
  table.add("text", Texts{"#1", " # 2", "\"a", "b\tc", "d\ne", "`f`", "%g", std::string("h\0i", 3)});
  EXPECT_EQ(to_dat(table), "text\n\"#1\"\n\" # 2\"\n'a\nb c\nd e\n`f`\n%g\nh i\n");
}

TEST(Data, GnuplotShowsEveryText) {
  Table table("texts");
  const Texts texts = {"#1", "\"two", "`three`", "%4", "five #", "six\"", "\""};
  table.add("text", texts).add("place", Integers{1, 2, 3, 4, 5, 6, 7});
  Figure figure{.name = "texts", .data = {{"texts", table}}};
  figure.setup = "set xrange [0:9]; set yrange [0:9]\n";
  figure.plot = "plot texts using \"place\":\"place\":\"text\" with labels noenhanced notitle\n";
  const TemporaryFolder folder;
  EXPECT_EQ(draw(figure, folder.path(), light_theme()).warnings, "");
  const std::string svg = bytes_of(folder / "texts.svg");
  for (const char* shown : {"#1<", ">'two<", ">`three`<", ">%4<", ">five #<", ">six'<", ">'<"})
    EXPECT_THAT(svg, HasSubstr(shown));
}

TEST(Names, OfDataAreOursAndNothingThatScriptsUseAlready) {
  for (const char* bad :
       {"", "a b", "a;b", "gain'", "a = system(\"x\"); b", "2nd", "_a", "ink", "for", "format", "x"}) {
    Figure figure = line_figure("line");
    figure.data[0].name = bad;
    expect_error(Fault::runtime, "name = ", [&] { script_of(figure, light_theme()); });
    const TemporaryFolder folder;
    EXPECT_THROW(draw(figure, folder.path(), light_theme()), Error);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
  Figure twice = line_figure("line");
  twice.data.push_back(twice.data[0]);
  expect_error(Fault::runtime, "data name = 'line'", [&] { script_of(twice, light_theme()); });
}

TEST(Names, OfFiguresAndColumnsAreOurs) {
  for (const char* bad : {"", "../a", "a b", "-a", "a'", "a\n"}) {
    expect_error(Fault::runtime, "name = ", [&] { script_of(line_figure(bad), light_theme()); });
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
