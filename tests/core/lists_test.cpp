#include "core/lists.h"

#include <gtest/gtest.h>

#include <set>

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

// Place i is floor(i (all - 1) / (most - 1)).
TEST(EvenlySpaced, PlacesAreAtEqualDistances) {
  for (std::size_t most = 2; most < 8; ++most)
    for (std::size_t all = 1; all < 60; ++all) {
      std::set<std::size_t> expected;
      for (std::size_t i = 0; i < std::min(all, most); ++i)
        expected.insert(all <= most ? i : i * (all - 1) / (most - 1));
      const std::vector<std::size_t> places = evenly_spaced(all, most);
      EXPECT_EQ(std::set<std::size_t>(places.begin(), places.end()), expected) << most << " of " << all;
      EXPECT_EQ(places.size(), std::min(all, most));
      EXPECT_EQ(places.front(), 0U);
      EXPECT_EQ(places.back(), all - 1);
      for (std::size_t i = 2; i < places.size(); ++i)  // whole distances that differ by one at most
        EXPECT_LE(std::max(places[i] - places[i - 1], places[1]), std::min(places[i] - places[i - 1], places[1]) + 1);
    }
}

}  // namespace
}  // namespace headscope
