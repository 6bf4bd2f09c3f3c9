#include "figures/script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/expect_error.h"

namespace headscope {
namespace {

using headscope::test::expect_error;

// What is known only when the program runs cannot become a piece of a script.
static_assert(!std::is_constructible_v<Script, std::string>);
static_assert(!std::is_constructible_v<Script, std::string_view>);
static_assert(!std::is_constructible_v<Script, const char*>);
static_assert(!std::is_constructible_v<Script, char (&)[8]>);
static_assert(!ScriptPart<std::string> && !ScriptPart<std::string_view> && !ScriptPart<const char*>);
static_assert(!ScriptPart<char> && !ScriptPart<bool>);
static_assert(ScriptPart<Script> && ScriptPart<double> && ScriptPart<std::int64_t>);

TEST(GnuplotText, EscapesWhatEnhancedTextWouldInterpret) {
  EXPECT_EQ(gnuplot_text("a_b^{c}").text(), R"('a\_b\^\{c\}')");
  EXPECT_EQ(gnuplot_text("x@y&z~\\").text(), R"('x\@y\&z\~\\')");
  EXPECT_EQ(gnuplot_text("\\U+0041 U+").text(), R"('\\{}U+0041 U+')");
  EXPECT_EQ(gnuplot_text("it's").text(), "'it''s'");
  EXPECT_EQ(gnuplot_text("two\nlines\x7f").text(), "'two lines '");
  EXPECT_EQ(gnuplot_text(std::string_view("a\0b", 3)).text(), "'a b'");
}

// gnuplot reads '' as a quote only behind another character: 'a''''b' are two strings.
TEST(GnuplotText, QuotesAtTheStartAndInARowAreOctal) {
  EXPECT_EQ(gnuplot_text("'quoted'").text(), R"('\047quoted''')");
  EXPECT_EQ(gnuplot_text("a''b'''").text(), R"('a''\047b''\047\047')");
}

TEST(GnuplotText, BytesThatAreNotUtf8BecomeReplacementCharacters) {
  EXPECT_EQ(gnuplot_text("γ\xff\xc3").text(), "'γ\uFFFD\uFFFD'");
  EXPECT_EQ(gnuplot_text("\xed\xa0\x80").text(), "'\uFFFD\uFFFD\uFFFD'");             // a surrogate
  EXPECT_EQ(gnuplot_text("\xc0\xa7 x").text(), "'\uFFFD\uFFFD x'");                   // a quote in two bytes
  EXPECT_EQ(gnuplot_text("\xef\xbf\xbf\xf4\x90\x80\x80").text().size(), 2 + 7 * 3u);  // U+FFFF; beyond the last
  EXPECT_EQ(gnuplot_text("漢字 🎉").text(), "'漢字 🎉'");
}

TEST(GnuplotName, IsLettersDigitsAndUnderscores) {
  EXPECT_EQ(gnuplot_name("k_norm2").text(), "k_norm2");
  for (const char* bad : {"", "a b", "a;b", "a-b", "a\n", "γ", "a'"})
    expect_error(Fault::runtime, "name = ", [&] { gnuplot_name(bad); });
}

TEST(FormatScript, TakesNumbersAndScripts) {
  EXPECT_EQ(format_script("set {}range [{:.3g}:{}]", Script("x"), 0.25, std::int64_t{7}).text(), "set xrange [0.25:7]");
  EXPECT_EQ(join(std::vector<Script>{"a", "b"}, ", ").text(), "a, b");
}

TEST(FormatScript, RefusesNumbersThatGnuplotWouldReadAsNames) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    expect_error(Fault::runtime, "a script needs a number", [&] { format_script("{}", bad); });
}

TEST(Shorten, KeepsBothEndsAndWholeCharacters) {
  EXPECT_EQ(shorten("short", 5), "short");
  EXPECT_EQ(shorten("abcdefghij", 5), "ab…ij");
  EXPECT_EQ(shorten("äöüäöü", 4), "äö…ü");
  EXPECT_EQ(shorten("a" + std::string(1000, '\x80'), 5).size(), 4u + 3);  // each stray byte is a character
}

}  // namespace
}  // namespace headscope
