#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/time_limit.h"
#include "tokenizer/byte_characters.h"
#include "tokenizer/newer_code_points.h"
#include "tokenizer/text_pattern.h"
#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace headscope {
namespace {

std::vector<std::string> matches_of(TextPattern pattern, std::string_view text) {
  std::vector<TextRange> matches;
  pattern.find(text, matches);
  std::vector<std::string> found;
  for (const TextRange& match : matches) found.emplace_back(text.substr(match.begin, match.end - match.begin));
  return found;
}

TEST(Utf8, EveryCodePointIsReadAsItIsWritten) {
  for (char32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
    std::string text = "x";
    append_utf8(code_point, text);
    ASSERT_FALSE(first_invalid_utf8(text)) << static_cast<std::uint32_t>(code_point);
    std::size_t place = 1;
    ASSERT_EQ(next_code_point(text, place), code_point);
    ASSERT_EQ(place, text.size());
    ASSERT_EQ(last_code_point(text), code_point);
    ASSERT_EQ(utf8_length(text[1]), text.size() - 1);
  }
}

// The examples of the Unicode standard, table 3-8 and following.
TEST(Utf8, WrongBytesAreReplacedByMaximalSubparts) {
  const auto marks = [](std::string_view bytes) { return replace_invalid_utf8(bytes); };
  const std::string mark = "\xEF\xBF\xBD";
  EXPECT_EQ(marks("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), mark + mark + mark + mark + mark + mark + mark + mark + "A");
  EXPECT_EQ(marks("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), mark + mark + mark + mark + mark + mark + mark + mark + "A");
  EXPECT_EQ(marks("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), mark + mark + mark + mark + mark + "A" + mark + mark + "B");
  EXPECT_EQ(marks("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), mark + mark + mark + mark + "A");
}

TEST(Utf8, BytesOfNoCharacterAreShownAsNumbers) {
  EXPECT_EQ(visible_bytes("a\xC3\xA9\xE7\x8C z\n"), "a\xC3\xA9⟨0xE7⟩⟨0x8C⟩ z\n");
  EXPECT_EQ(visible_bytes("\xFF"), "⟨0xFF⟩");
  EXPECT_EQ(visible_bytes(""), "");
}

TEST(ByteCharacters, LeadBack) {
  std::string bytes, text;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  append_byte_characters(bytes, text);
  EXPECT_EQ(bytes_of_characters(text), bytes);
  EXPECT_FALSE(bytes_of_characters("a b"));
  EXPECT_FALSE(bytes_of_characters("\xE2\x96\x81"));
  text.clear();
  append_byte_characters(" \n\xC3\xA9", text);
  EXPECT_EQ(text, "ĠĊÃ©");
}

TEST(TextPattern, LongWordsNeedNoStack) {
  const std::string word(1 << 20, 'a');
  const test::TimeLimit limit(120);
  EXPECT_EQ(matches_of(TextPattern::expression("(?:a|b)+"), word).size(), 1U);  // a frame for each letter
  EXPECT_EQ(matches_of(TextPattern::expression("(?:[a-z&&[^x]])+"), word).size(), 1U);
  EXPECT_EQ(matches_of(TextPattern::expression(R"(\s*[\r\n]+|\s+(?!\S)|\s+)"), std::string(1 << 20, ' ') + "x").size(),
            2U);
}

TEST(TextPattern, EndlessTriesAreStopped) {
  const test::TimeLimit limit(120);
  test::expect_error(Fault::input, "the pattern '(?:a+)+[bc]' fails on a text of 60 bytes",
                     [] { matches_of(TextPattern::expression("(?:a+)+[bc]"), std::string(60, 'a')); });
}

TEST(TextPattern, CopiesFindTheSame) {
  TextPattern one = TextPattern::expression(R"(\p{L}+)");
  TextPattern other = one;
  EXPECT_EQ(matches_of(one, "ab 1 c"), (std::vector<std::string>{"ab", "c"}));
  EXPECT_EQ(matches_of(other, "ab 1 c"), (std::vector<std::string>{"ab", "c"}));
}

TEST(NewerCodePoints, AreThoseWithoutMeaning) {
  NewerCodePoints newer;
  EXPECT_EQ(newer.count("a\u00e9\u4e2d\U0001f600\ue000"), 0);
  EXPECT_EQ(newer.count("\u0378 \U000e0fff"), 2);
  EXPECT_EQ(newer.count("\ufffe\uffff\ufdd0\U0010ffff"), 0);  // they never get one
}

TEST(Unicode, MarksAreSortedInLittleTime) {
  std::string text = "a";
  for (int i = 0; i < 300'000; ++i) text += "\u0345\u0334";
  const test::TimeLimit limit(60);
  const std::string sorted = to_normal_form(text, NormalForm::nfd);
  EXPECT_EQ(sorted.size(), text.size());
  EXPECT_TRUE(sorted.starts_with("a\u0334\u0334"));
  EXPECT_TRUE(sorted.ends_with("\u0345\u0345"));
}

}  // namespace
}  // namespace headscope
