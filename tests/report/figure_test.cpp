#include "report/figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "core/error.h"
#include "report/figure_files.h"
#include "report/gnuplot.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using headscope::testing::TemporaryFolder;

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

Figure line_figure(const std::string& name) {
  Table table("line");
  table.add("x", Integers{1, 2, 3}).add("y", Numbers{0.5, std::nan(""), 2}).add("name", Texts{"a", "b\tc", "d"});
  Figure figure{.name = name};
  figure.data.push_back({"line", table});
  figure.setup = "set xrange [0:4]; set yrange [0:3]\n";
  figure.plot = "plot line using \"x\":\"y\" with linespoints title 'a line'\n";
  return figure;
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

TEST(GnuplotText, EscapesWhatEnhancedTextWouldInterpret) {
  EXPECT_EQ(gnuplot_text("a_b^{c}"), R"('a\_b\^\{c\}')");
  EXPECT_EQ(gnuplot_text("x@y&z~\\"), R"('x\@y\&z\~\\')");
  EXPECT_EQ(gnuplot_text("it's"), "'it''s'");
  EXPECT_EQ(gnuplot_text("two\nlines\x7f"), "'two lines '");
  EXPECT_EQ(gnuplot_literal("a_b's.dat"), "'a_b''s.dat'");
}

TEST(Shorten, KeepsBothEndsAndWholeCharacters) {
  EXPECT_EQ(shorten("short", 5), "short");
  EXPECT_EQ(shorten("abcdefghij", 5), "ab…ij");
  EXPECT_EQ(shorten("äöüäöü", 4), "äö…ü");
}

TEST(Draw, WritesImagesScriptAndData) {
  const TemporaryFolder folder;
  const Drawn drawn = draw(line_figure("line"), folder.path() / "plots", light_theme());
  EXPECT_EQ(drawn.warnings, "");
  EXPECT_EQ(names_in(folder.path() / "plots"), (std::set<std::string>{"line.png", "line.svg", "line.gp", "line.dat"}));
  EXPECT_EQ(drawn.files.size(), 4u);
  for (const fs::path& file : drawn.files) EXPECT_TRUE(fs::exists(file)) << file;
  EXPECT_EQ(png_size(folder.path() / "plots/line.png"), std::pair(1600u, 1000u));
  const std::string svg = bytes_of(folder.path() / "plots/line.svg");
  EXPECT_THAT(svg, HasSubstr("<svg"));
  EXPECT_THAT(svg, HasSubstr("</svg>"));
  EXPECT_THAT(svg, HasSubstr("a line"));
}

TEST(Draw, DataAreTabSeparatedWithNaNForMissing) {
  EXPECT_EQ(to_dat(line_figure("line").data[0].table), "x\ty\tname\n1\t0.5\ta\n2\tNaN\tb c\n3\t2\td\n");
}

TEST(Draw, SeveralTablesGetANameEach) {
  const TemporaryFolder folder;
  Figure figure = line_figure("two");
  figure.data.push_back({"again", figure.data[0].table});
  draw(figure, folder.path(), light_theme());
  EXPECT_TRUE(fs::exists(folder.path() / "two.line.dat"));
  EXPECT_TRUE(fs::exists(folder.path() / "two.again.dat"));
}

TEST(Draw, SameFigureGivesSameBytes) {
  const TemporaryFolder one, two;
  std::vector<Figure> figures;
  for (int i = 0; i < 9; ++i) figures.push_back(line_figure("line" + std::to_string(i)));  // several processes
  draw(figures, one.path(), dark_theme());
  draw(figures, two.path(), dark_theme());
  EXPECT_EQ(names_in(one.path()).size(), 36u);
  for (const std::string& name : names_in(one.path()))
    EXPECT_EQ(bytes_of(one.path() / name), bytes_of(two.path() / name)) << name;
}

TEST(Draw, ScriptDrawsTheSameAgainInAnotherPlace) {
  const TemporaryFolder folder, elsewhere;
  draw(line_figure("line"), folder.path(), light_theme());
  fs::copy(folder.path() / "line.gp", elsewhere.path());
  fs::copy(folder.path() / "line.dat", elsewhere.path());
  ASSERT_EQ(std::system(("cd '" + elsewhere.path().string() + "' && gnuplot line.gp").c_str()), 0);
  for (const char* image : {"line.png", "line.svg"}) {
    EXPECT_GT(bytes_of(folder.path() / image).size(), 1000u);
    EXPECT_EQ(bytes_of(folder.path() / image), bytes_of(elsewhere.path() / image)) << image;
  }
}

TEST(Draw, FailureIsOneLineWithTheMessageAndTheScript) {
  const TemporaryFolder folder;
  std::vector<Figure> figures = {line_figure("good"), line_figure("broken")};
  figures[1].plot = "plot nonsense(x)\n";
  try {
    draw(figures, folder.path(), light_theme());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::runtime);
    const std::string message = error.what();
    EXPECT_THAT(message, HasSubstr((folder.path() / "broken.gp").string()));
    EXPECT_THAT(message, HasSubstr("undefined function: nonsense"));
    EXPECT_THAT(message, Not(HasSubstr("\n")));
  }
  EXPECT_TRUE(fs::exists(folder.path() / "broken.gp"));  // to be looked at
  EXPECT_FALSE(fs::exists(folder.path() / "broken.png"));
  for (const std::string& name : names_in(folder.path())) EXPECT_FALSE(name.starts_with(".")) << name;
}

TEST(Draw, FailureLeavesTheOldImage) {
  const TemporaryFolder folder;
  Figure figure = line_figure("line");
  draw(figure, folder.path(), light_theme());
  const std::string before = bytes_of(folder.path() / "line.png");
  figure.plot = "plot 'absent.dat'\nthis is no command\n";
  EXPECT_THROW(draw(figure, folder.path(), light_theme()), Error);
  EXPECT_EQ(bytes_of(folder.path() / "line.png"), before);
}

TEST(Draw, AbsentGnuplotIsOneLineThatSaysWhatToInstall) {
  const TemporaryFolder folder;
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", folder.path().c_str(), 1);
  try {
    draw(line_figure("line"), folder.path(), light_theme());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::runtime);
    EXPECT_THAT(error.what(), HasSubstr("gnuplot is not installed"));
    EXPECT_THAT(error.what(), HasSubstr("apt install gnuplot-nox"));
  }
  ::setenv("PATH", path.c_str(), 1);
}

TEST(Draw, FolderThatCannotBeMadeIsARuntimeError) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "x";
  try {
    draw(line_figure("line"), folder.path() / "file" / "plots", light_theme());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::runtime);
    EXPECT_THAT(error.what(), HasSubstr("file/plots"));
  }
}

TEST(Draw, FolderWithSpacesQuotesAndColonsWorks) {
  const TemporaryFolder folder;
  const fs::path odd = folder.path() / "it's a: folder";
  EXPECT_EQ(draw(line_figure("line"), odd, light_theme()).warnings, "");
  EXPECT_EQ(png_size(odd / "line.png"), std::pair(1600u, 1000u));
}

TEST(Draw, HostileNamesAreShownNotRun) {
  const TemporaryFolder folder;
  const std::string touch = "touch " + (folder.path() / "run").string();
  Figure figure = line_figure("line");
  const std::string name = "`" + touch + "` @M ' . system('" + touch + "') . '";
  figure.setup += "M = \"system('" + touch + "')\"\nset title " + gnuplot_text(name) + "\n";
  draw(figure, folder.path(), light_theme());
  EXPECT_FALSE(fs::exists(folder.path() / "run"));
  EXPECT_THAT(bytes_of(folder.path() / "line.svg"), HasSubstr("`" + touch + "` @M ' . system('"));
}

TEST(Draw, UsersStartUpFileIsNotRead) {
  const TemporaryFolder home, folder;
  std::ofstream(home.path() / ".gnuplot") << "exit status 3\n";
  const char* before = std::getenv("HOME");
  const std::string old = before == nullptr ? "" : before;
  ::setenv("HOME", home.path().c_str(), 1);
  EXPECT_NO_THROW(draw(line_figure("line"), folder.path(), light_theme()));
  ::setenv("HOME", old.c_str(), 1);
}

}  // namespace
}  // namespace headscope
