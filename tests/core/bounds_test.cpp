#include "core/bounds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/expect_error.h"

namespace headscope {
namespace {

using test::expect_error;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

TEST(CheckSize, NamesKeyValueAndRange) {
  EXPECT_NO_THROW(check_size("n", 1, 1, 8));
  EXPECT_NO_THROW(check_size("n", 8, 1, 8));
  expect_error(Fault::input, "n is 0; expected 1 to 8", [] { check_size("n", 0, 1, 8); });
  expect_error(Fault::input, "n is 9; expected 1 to 8", [] { check_size("n", 9, 1, 8); });
}

TEST(CheckNumber, EndsBelongToTheRangeOrNot) {
  EXPECT_NO_THROW(check_number("x", 0, zero_up_to(1)));
  EXPECT_NO_THROW(check_number("x", 1, positive_up_to(1)));
  expect_error(Fault::input, "x is 0; expected more than 0 and at most 1",
               [] { check_number("x", 0, positive_up_to(1)); });
  expect_error(Fault::input, "x is 1; expected more than 0 and less than 1",
               [] { check_number("x", 1, between(0, 1)); });
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity(), -1.0})
    expect_error(Fault::input, "expected at least 0 and at most 3e+38",
                 [&] { check_number("x", value, zero_up_to(largest_float)); });
}

TEST(CheckedProduct, IsExactOrAnErrorThatNamesTheKeys) {
  EXPECT_EQ(checked_product({{"a", 3'037'000'499}, {"b", 3'037'000'499}}, largest, "tokens"),
            9'223'372'030'926'249'001);
  expect_error(Fault::input, "a 3037000500 x b 3037000500 is too much; expected at most 9223372036854775807 tokens",
               [] {
                 checked_product({{"a", 3'037'000'500}, {"b", 3'037'000'500}}, largest, "tokens");
               });
  expect_error(Fault::input, "a 9 x b 9 is too much; expected at most 80 tokens", [] {
    checked_product({{"a", 9}, {"b", 9}}, 80, "tokens");
  });
  // 2^32 x 2^32 is 0 in 64 bits.
  expect_error(Fault::input, "is too much", [] {
    checked_product({{"a", std::int64_t{1} << 32}, {"b", std::int64_t{1} << 32}}, largest, "tokens");
  });
}

}  // namespace
}  // namespace headscope
