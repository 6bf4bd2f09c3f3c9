#include "core/lists.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace headscope {
namespace {

using test::expect_error;

TEST(CommaSeparated, HasAPartMoreThanCommas) {
  EXPECT_EQ(comma_separated("a,bc,"), (std::vector<std::string>{"a", "bc", ""}));
  EXPECT_EQ(comma_separated(""), std::vector<std::string>{""});
}

TEST(IndexList, HoldsNumbersAndRanges) {
  EXPECT_EQ(parse_index_list("0,4-7,2", "--layers"), (std::vector<std::int64_t>{0, 2, 4, 5, 6, 7}));
  for (const char* bad : {"", ",", "1,", "a", "3-1", "-1", "1-", "1--2", "1 2", "0-999999999999"})
    expect_error(Fault::input, "expected numbers and ranges such as 0,4-7", [&] { parse_index_list(bad, "--layers"); });
}

}  // namespace
}  // namespace headscope
