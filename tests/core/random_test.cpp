#include "core/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "stats/oracle.h"

namespace headscope {
namespace {

// As in the oracle: FNV-1a over whole numbers.
std::uint64_t digest(const std::vector<std::int64_t>& values) {
  std::uint64_t code = 0xCBF29CE484222325;
  for (const std::int64_t value : values) code = (code ^ static_cast<std::uint64_t>(value)) * 0x100000001B3;
  return code;
}

void expect_same_call(NumpyGenerator& generator, const nlohmann::json& call) {
  const std::string name = call["call"];
  if (name == "integers") {
    EXPECT_EQ(generator.integers(call["n"].get<std::uint64_t>()), call["value"].get<std::uint64_t>());
  } else if (name == "random") {
    EXPECT_EQ(generator.uniform(), call["value"].get<double>());
  } else {
    ASSERT_EQ(name, "choice");
    const std::int64_t n = call["n"], k = call["k"];
    const auto values = generator.choice(n, k);
    EXPECT_EQ(digest(values), call["digest"].get<std::uint64_t>());
    if (call.contains("values")) {
      EXPECT_EQ(values, call["values"].get<std::vector<std::int64_t>>());
    }
  }
}

TEST(NumpyGenerator, InterleavedCallsAreNumpysBitForBit) {
  const auto generators = test::stats_oracle("random");
  ASSERT_GT(generators.size(), 100U);
  for (const auto& oracle : generators) {
    NumpyGenerator generator(oracle["seed"].get<std::uint64_t>());
    for (const auto& call : oracle["calls"]) {
      expect_same_call(generator, call);
      if (::testing::Test::HasFailure()) {
        FAIL() << "seed " << oracle["seed"] << ", call " << call;
      }
    }
  }
}

TEST(NumpyGenerator, ChoicePairIsChoiceOfTwo) {
  NumpyGenerator generator(5);
  for (std::int64_t n = 2; n < 20'000; n = n < 400 ? n + 1 : n + 97) {
    auto other = generator;
    const auto [first, second] = generator.choice_pair(n);
    const auto values = other.choice(n, 2);
    ASSERT_EQ(first, values[0]) << "n = " << n;
    ASSERT_EQ(second, values[1]) << "n = " << n;
    auto same = generator;
    ASSERT_EQ(same.next32(), other.next32()) << "n = " << n;  // where one of them keeps half a draw
    ASSERT_EQ(same.next64(), other.next64()) << "n = " << n;
  }
}

TEST(NumpyGenerator, ChoiceOfAllIsAPermutation) {
  NumpyGenerator generator(9);
  for (const std::int64_t n : {1, 2, 500, 10'000, 10'001}) {
    auto values = generator.choice(n, n);
    std::sort(values.begin(), values.end());
    std::vector<std::int64_t> expected(static_cast<std::size_t>(n));
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(values, expected);
  }
}

TEST(NumpyGenerator, RefusesImpossibleRequests) {
  NumpyGenerator generator(0);
  EXPECT_THROW(generator.integers(0), Error);
  EXPECT_THROW(generator.choice(3, 4), Error);
  EXPECT_THROW(generator.choice(3, -1), Error);
  EXPECT_THROW(generator.choice_pair(1), Error);
}

}  // namespace
}  // namespace headscope
