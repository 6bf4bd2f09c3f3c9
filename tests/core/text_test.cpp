#include "core/text.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"

namespace headscope {
namespace {

TEST(FixedText, HasNoSignBeforeZero) {
  EXPECT_EQ(fixed_text(-0.00004, 4), "0.0000");
  EXPECT_EQ(fixed_text(-0.0, 2), "0.00");
  EXPECT_EQ(fixed_text(-0.00006, 4), "-0.0001");
  EXPECT_EQ(fixed_text(-10, 1), "-10.0");
  EXPECT_EQ(fixed_text(-0.4, 0), "0");
  EXPECT_EQ(signed_text(-0.00004, 4), "0.0000");
  EXPECT_EQ(signed_text(0.00004, 4), "0.0000");
  EXPECT_EQ(signed_text(0.25, 2), "+0.25");
  EXPECT_EQ(signed_text(-0.25, 2), "-0.25");
}

TEST(FixedText, DoesNotRoundAcrossALimit) {
  EXPECT_EQ(fixed_text(1.0998, 3, {1.1}), "1.0998");
  EXPECT_EQ(fixed_text(1.09998, 3, {1.1}), "1.09998");
  EXPECT_EQ(fixed_text(1.0993, 3, {1.1}), "1.099");
  EXPECT_EQ(fixed_text(1.1, 3, {1.1}), "1.100");
  EXPECT_EQ(fixed_text(1.1003, 3, {1.1}), "1.1003");  // above it, not on it
  EXPECT_EQ(fixed_text(0.996, 2, {1}), "0.996");
  EXPECT_EQ(fixed_text(-0.996, 2, {1, -1}), "-0.996");
  EXPECT_EQ(fixed_text(std::nextafter(1.1, 0), 3, {1.1}), "1.100");  // no digits tell them apart
  EXPECT_EQ(signed_text(0.996, 2, {1}), "+0.996");
}

TEST(TokensText, IsExactBelowAMillion) {
  EXPECT_EQ(tokens_text(0), "0 tokens");
  EXPECT_EQ(tokens_text(1), "1 token");
  EXPECT_EQ(tokens_text(640), "640 tokens");
  EXPECT_EQ(tokens_text(1000), "1,000 tokens");
  EXPECT_EQ(tokens_text(614'400), "614,400 tokens");
  EXPECT_EQ(tokens_text(999'999), "999,999 tokens");
  EXPECT_EQ(tokens_text(1'000'000), "1.0 M tokens");
  EXPECT_EQ(tokens_text(49'152'000), "49.2 M tokens");
  EXPECT_EQ(tokens_text(30'000'000'000), "30.0 G tokens");
}

TEST(Wrapped, KeepsTheWidthAndEveryWord) {
  EXPECT_EQ(wrapped("aa bb cc dd", 7, 2, 2), "aa bb\n  cc dd");  // two characters stand before the first line
  EXPECT_EQ(wrapped("aa bb cc dd", 8, 0, 0), "aa bb cc\ndd");
  EXPECT_EQ(wrapped("γγ ττ −−", 5, 1, 0), "γγ ττ\n −−");  // characters, not bytes
  EXPECT_EQ(wrapped("much_too_long a", 4, 1, 0), "much_too_long\n a");
  EXPECT_EQ(wrapped("aa bb", 5, 0, 0), "aa bb");
  EXPECT_EQ(wrapped("aa bb", 4, 0, 0), "aa\nbb");  // the space counts
  EXPECT_EQ(wrapped("", 10, 1, 0), "");
}

TEST(Excerpt, HasNoPartOfACharacter) {
  EXPECT_EQ(excerpt("abc", 3), "abc");
  EXPECT_EQ(excerpt("abcd", 3), "abc ...");
  EXPECT_EQ(excerpt("a\xC3\xA9\xC3\xA9", 4), "a\xC3\xA9 ...");                            // é of two bytes
  EXPECT_EQ(excerpt("\xF0\x9F\x98\x80\xF0\x9F\x98\x80", 7), "\xF0\x9F\x98\x80 ...");      // of four
  EXPECT_EQ(excerpt("\x80\x80\x80\x80\x80\x80\x80", 6), "\x80\x80\x80\x80\x80\x80 ...");  // no UTF-8
}

}  // namespace
}  // namespace headscope
