// Whatever a text holds, a script does the same with it as with a harmless one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "figures/every_figure.h"
#include "figures/figure_files.h"
#include "figures/gnuplot_skeleton.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using headscope::test::expect_error;
using headscope::test::figure_kinds;
using headscope::test::FigureKind;
using headscope::test::FigureTexts;
using headscope::test::skeleton_of;
using headscope::test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<std::string> nasty_texts = {
    "'",
    "''",
    "'quoted'",
    "a''b",
    "'''",
    "'; system('cd ..; touch run'); '",
    "' . system(\"cd ..; touch run\") . '",
    "'\nsystem('cd ..; touch run')\n'",
    "\"\nsystem('cd ..; touch run')\n",
    "\" . system('cd ..; touch run') . \"",
    "`cd ..; touch run`",
    "'`cd ..; touch run`'",
    "\"`cd ..; touch run`\"",
    "\\`cd ..; touch run`",
    "!touch run",
    "@M",
    "' @M '",
    "\" @M",
    "$(touch run)",
    "%s%n%g",
    "\\",
    "ends in \\",
    "\\101 \\U+0041 \\n",
    "{/:Bold x}",
    "{",
    "}",
    "}\nsystem('cd ..; touch run')\n{",
    "# no comment",
    "-e",
    "&#x3c;script>",
    "<script>alert(1)</script>",
    "it's γ 漢字 🎉",
    "\xff\xfe\xc3",
    std::string("a\0b", 3),
    "\x1b[31m\r\n\t\v",
    "x_1^{2}~a&b@c",
    std::string(5000, '\''),
    std::string(5000, 'y'),
};

FigureTexts texts_of(const std::string& text) {
  return {.title = text, .by = "", .order = "", .role = text, .run_1 = text, .run_2 = text};
}

TEST(Skeleton, SeesWhatIsCodeAndWhatIsText) {
  EXPECT_THAT(skeleton_of("set label 1 'it''s' # 'no' \nplot x, \\\n 2.5e-3").tokens,
              ElementsAre("set", "label", "N", "S", ";", "plot", "x", ",", "N"));
  EXPECT_THAT(skeleton_of("a = \"x\\\"; y\"; b").tokens, ElementsAre("a", "=", "S", ";", "b"));
  EXPECT_THAT(skeleton_of("a = 'x'\n").faults, IsEmpty());
  for (const char* bad : {"a = 'x''''y'", "a = '''x'", "a = \"`b\"", "`b", "@M", "a = 'x", "!b", "set xrange [nan:1]"})
    EXPECT_EQ(skeleton_of(bad).faults.size(), 1u) << bad;
}

class EveryKind : public ::testing::TestWithParam<std::size_t> {
 protected:
  const FigureKind& kind = figure_kinds()[GetParam()];
};
INSTANTIATE_TEST_SUITE_P(HostileText, EveryKind, ::testing::Range<std::size_t>(0, figure_kinds().size()),
                         [](const auto& kind) { return figure_kinds()[kind.param].name; });

TEST_P(EveryKind, ATextNeverBecomesCode) {
  const std::vector<Figure> harmless = kind.figures(texts_of("harmless"), {});
  for (const std::string& text : nasty_texts) {
    const std::vector<Figure> hostile = kind.figures(texts_of(text), {});
    ASSERT_EQ(hostile.size(), harmless.size());
    for (std::size_t i = 0; i < hostile.size(); ++i) {
      const auto skeleton = skeleton_of(script_of(hostile[i]));
      EXPECT_EQ(skeleton.tokens, skeleton_of(script_of(harmless[i])).tokens) << hostile[i].name << text;
      EXPECT_THAT(skeleton.faults, IsEmpty()) << hostile[i].name;
      EXPECT_EQ(hostile[i].data.size(), harmless[i].data.size());
      for (std::size_t block = 0; block < hostile[i].data.size(); ++block)
        EXPECT_EQ(to_dat(hostile[i].data[block].table), to_dat(harmless[i].data[block].table));
    }
  }
}

// With gnuplot itself, which has the last word on what is code.
TEST_P(EveryKind, GnuplotRunsNoText) {
  const std::string text = "'`cd ..; touch run`' . system(\"cd ..; touch run\") . \"{'";
  const TemporaryFolder folder;
  EXPECT_EQ(draw(kind.figures(texts_of(text), {}), folder.path() / "plots", light_theme()).warnings, "");
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "plots" / "run"));
}

// Every text in every place of a figure that takes one.
TEST(HostileText, GnuplotShowsEveryTextAsItIs) {
  const TemporaryFolder folder;
  Figure figure = line_figure("line");
  figure.subject = nasty_texts[5];
  figure.grid.height = 600;
  Panel& panel = figure.panels[0];
  panel.title = nasty_texts[7];
  panel.x.label = panel.y.label = {nasty_texts[9]};
  panel.x.tics = {{1, nasty_texts[11]}};
  for (const std::string& text : nasty_texts) {
    const std::string shown = shorten(text, 33);  // there is room for so many
    panel.labels.push_back({.text = {shown}, .place = Label::beside, .y = 1});
    panel.marks.push_back(panel.marks[0].named(shown));
    figure.notes.push_back(shown);
  }
  EXPECT_EQ(draw(figure, folder.path(), light_theme()).warnings, "");
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  const std::string svg = bytes_of(folder / "line.svg");
  for (const char* shown :
       {">'quoted'<", ">a''b<", ">'; system('cd ..; touch run'); '<", ">`cd ..; touch run`<", ">' @M '<", ">%s%n%g<",
        ">ends in \\<", ">\\101 \\<", ">U+0041 \\n<", ">{/:Bold x}<", "># no comment<", ">&amp;#x3c;script><",
        ">&lt;script>alert(1)&lt;/script><", ">it's γ 漢字 🎉<", ">\uFFFD\uFFFD\uFFFD<", ">a b<", ">x_1^{2}~a&amp;b@c<"})
    EXPECT_THAT(svg, HasSubstr(shown));
}

TEST(HostileText, ByAndOrderOfSurgeryAreThoseThatItWrites) {
  for (const std::string& text : nasty_texts) {
    expect_error(Fault::input, "column 'by' holds '", [&] {
      test::any_surgery({.title = "", .by = text, .order = "", .role = "", .run_1 = "", .run_2 = ""}, {});
    });
    expect_error(Fault::input, "column 'order' holds '", [&] {
      test::any_surgery({.title = "", .by = "", .order = text, .role = "", .run_1 = "", .run_2 = ""}, {});
    });
  }
}

}  // namespace
}  // namespace headscope
