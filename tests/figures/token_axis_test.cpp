#include "figures/token_axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headscope {
namespace {

using ::testing::HasSubstr;

TEST(TokenAxis, CountsInTheUnitOfTheWholeRun) {
  EXPECT_EQ(token_axis_label(token_axis({0, 600})).text(), "'tokens'");
  EXPECT_EQ(token_axis_label(token_axis({0, 0.6e6})).text(), "'tokens (thousand)'");
  EXPECT_EQ(token_axis_label(token_axis({0, 4e6})).text(), "'tokens (M)'");
  EXPECT_EQ(token_axis_label(token_axis({0, 3e10})).text(), "'tokens (B)'");
}

TEST(TokenAxis, NumbersAreUnitsAtPlacesInTokens) {
  const std::string commands = token_axis_commands(token_axis({0, 610304})).text();
  EXPECT_THAT(commands, HasSubstr("set xrange [0:610304]"));
  EXPECT_THAT(commands, HasSubstr("'200' 200000, '400' 400000, '600' 600000"));
  EXPECT_THAT(token_axis_commands(token_axis({0, 610304}), /*numbers=*/false).text(),
              HasSubstr("'' 200000, '' 400000"));
}

TEST(TokenAxis, EndsAtARoundNumberThatIsNear) {
  EXPECT_EQ(token_axis({0, 9.9e6}).axis.high, 1e7);
  EXPECT_EQ(token_axis({0, 8.5e6}).axis.high, 8.5e6);
}

TEST(TokenAxis, OneMomentIsOneTic) {
  EXPECT_THAT(token_axis_commands(token_axis({2e6, 2e6})).text(), HasSubstr("set xtics ('2' 2000000)"));
  EXPECT_THAT(token_axis_commands(token_axis({0})).text(), HasSubstr("set xtics ('0' 0)"));
}

TEST(TokenAxis, TextsNameTheUnit) {
  EXPECT_EQ(token_text(1.5e6, token_unit(4e6)), "1.5 M tokens");
  EXPECT_EQ(token_text(1657.4e6, token_unit(4e9)), "1657 M tokens");
  EXPECT_EQ(token_text(0, token_unit(4e6)), "0 tokens");
  EXPECT_EQ(token_text(512, token_unit(512)), "512 tokens");
}

}  // namespace
}  // namespace headscope
