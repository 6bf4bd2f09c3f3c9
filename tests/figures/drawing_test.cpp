// What `draw` leaves in a folder, also when it fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <regex>
#include <set>

#include "core/interrupt.h"
#include "figures/figure_files.h"
#include "support/expect_error.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using headscope::test::expect_error;
using headscope::test::FileSizeLimit;
using headscope::test::TemporaryFolder;
using ::testing::HasSubstr;

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

std::map<std::string, std::string> contents_of(const fs::path& folder) {
  std::map<std::string, std::string> contents;
  for (const std::string& name : names_in(folder)) contents[name] = bytes_of(folder / name);
  return contents;
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

TEST(Draw, FailureIsOneLineWithTheFigureTheLineAndTheMessage) {
  const TemporaryFolder folder;
  const Figure good = completed(line_figure("good"));
  const std::vector<FigureScript> scripts = {render(good, light_theme()), {"broken", "plot nonsense(x)\n", {}}};
  expect_error(Fault::runtime, "gnuplot could not draw " + (folder.path() / "broken").string() + ": line ",
               [&] { draw(scripts, folder.path()); });
  expect_error(Fault::runtime, ": undefined function: nonsense", [&] { draw(scripts, folder.path()); });
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{});
}

// Old figures that a failure must leave alone: other bytes than a drawing gives, and files that it does not make.
std::map<std::string, std::string> write_old_figures(const fs::path& folder) {
  for (const char* name : {"good.png", "good.svg", "good.gp", "good.dat", "broken.gp", "other.txt"})
    std::ofstream(folder / name) << "old " << name;
  return contents_of(folder);
}

TEST(Draw, AFigureThatFailsLeavesAllAsItWas) {
  const TemporaryFolder folder;
  const auto before = write_old_figures(folder.path());
  const Figure good = completed(line_figure("good"));
  const std::vector<FigureScript> scripts = {render(good, light_theme()),
                                             {"broken", "plot 'absent.dat'\nthis is no command\n", {}}};
  EXPECT_THROW(draw(scripts, folder.path()), Error);
  EXPECT_EQ(contents_of(folder.path()), before);
}

TEST(Draw, AnInterruptLeavesAllAsItWas) {
  const TemporaryFolder folder;
  const auto before = write_old_figures(folder.path());
  const std::vector<FigureScript> scripts = {{"good", "exit status 1\n", {}}};  // as when Ctrl-C reaches gnuplot
  {
    const InterruptGuard guard;
    std::raise(SIGINT);
    expect_error(Fault::interrupted, "interrupted while drawing", [&] { draw(scripts, folder.path()); });
  }
  const InterruptGuard forgets_the_signal;
  EXPECT_EQ(contents_of(folder.path()), before);
}

TEST(Draw, AFullDiskLeavesAllAsItWas) {
  const TemporaryFolder folder;
  const auto before = write_old_figures(folder.path());
  std::vector<Figure> figures = {line_figure("good")};
  Integers many(20000, 5);
  figures[0].data.push_back({"large", Table("large")});
  figures[0].data[1].table.add("x", many);  // 40 kB
  // The data do not fit; the images do not fit: gnuplot says nothing then.
  for (const rlim_t bytes : {30000, 3000}) {
    if (bytes == 3000) figures[0].data.pop_back();
    const FileSizeLimit limit(bytes);
    expect_error(Fault::runtime, "othing was changed", [&] { draw(figures, folder.path(), light_theme()); });
  }
  EXPECT_EQ(contents_of(folder.path()), before);
}

TEST(Draw, AFolderInTheWayLeavesAllAsItWas) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "line.svg");
  std::ofstream(folder / "line.png") << "old";
  const auto draw_line = [&] { draw(line_figure("line"), folder.path(), light_theme()); };
  expect_error(Fault::input, "line.png: is there and was not drawn by headscope", draw_line);
  std::ofstream(folder / "line.gp") << "old";
  expect_error(Fault::runtime, "line.svg: it is a folder", draw_line);
  EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{"line.svg", "line.png", "line.gp"}));
  EXPECT_EQ(bytes_of(folder / "line.png"), "old");
}

TEST(Draw, ASymbolicLinkIsReplacedAndNotFollowed) {
  const TemporaryFolder folder, elsewhere;
  std::ofstream(elsewhere / "target") << "mine";
  for (const char* name : {"line.png", "line.svg", "line.gp", "line.dat"})
    fs::create_symlink(elsewhere / "target", folder / name);
  draw(line_figure("line"), folder.path(), light_theme());
  EXPECT_EQ(bytes_of(elsewhere / "target"), "mine");
  for (const std::string& name : names_in(folder.path())) EXPECT_FALSE(fs::is_symlink(folder / name)) << name;
  EXPECT_EQ(png_size(folder / "line.png"), std::pair(1600u, 1000u));
}

TEST(Draw, AbsentGnuplotIsOneLineThatSaysWhatToInstallAndLeavesAllAsItWas) {
  const TemporaryFolder folder, empty;
  const auto before = write_old_figures(folder.path());
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", empty.path().c_str(), 1);
  const auto draw_it = [&] { draw(line_figure("good"), folder.path(), light_theme()); };
  expect_error(Fault::runtime, "gnuplot is not installed", draw_it);
  expect_error(Fault::runtime, "apt install gnuplot-nox", draw_it);
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(contents_of(folder.path()), before);
}

TEST(Draw, FolderThatCannotBeMadeIsARuntimeError) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "x";
  expect_error(Fault::runtime, "file/plots",
               [&] { draw(line_figure("line"), folder.path() / "file" / "plots", light_theme()); });
}

TEST(Draw, FolderWithSpacesQuotesAndColonsWorks) {
  const TemporaryFolder folder;
  const fs::path odd = folder.path() / "it's a: folder";
  EXPECT_EQ(draw(line_figure("line"), odd, light_theme()).warnings, "");
  EXPECT_EQ(png_size(odd / "line.png"), std::pair(1600u, 1000u));
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

// As gnuplot places them: the numbers of the y axis end at their place, the lines of its label stand upright.
TEST(Draw, TheLabelOfAnAxisStandsApartFromItsNumbers) {
  const TemporaryFolder folder;
  for (const std::vector<std::string>& label : {std::vector<std::string>{"one line"}, {"plasticity", "(a second)"}}) {
    Figure figure = line_figure("line");
    figure.panels[0].y = {.kind = Axis::fixed, .label = label, .tics = {{0.984, "0.984"}}, .low = 0.98, .high = 0.99};
    draw(figure, folder.path(), light_theme());
    const std::string svg = bytes_of(folder / "line.svg");
    const std::regex text(R"(translate\(([\d.]+),[\d.]+\)( rotate\(-90\))?"[^>]*>\s*<text><tspan[^>]*>([^<]*))");
    double number_begins = 0, label_ends = 0;
    for (std::sregex_iterator at(svg.begin(), svg.end(), text), end; at != end; ++at) {
      const double x = std::stod((*at)[1]);
      if ((*at)[2].matched) label_ends = std::max(label_ends, x + 3);  // letters below the line: a quarter of 12
      if ((*at)[3] == "0.984") number_begins = x - text_width("0.984", 12);
    }
    EXPECT_GT(label_ends, 10);
    EXPECT_GT(number_begins, label_ends + 6);  // half a number's height
  }
}

}  // namespace
}  // namespace headscope
