#include "formats/table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "core/atomic_file.h"
#include "core/missing.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::expect_error;

TEST(Csv, WritesShortestNumbersAndEmptyForMissing) {
  Table table;
  table.add("n", Integers{1, -2}).add("x", Numbers{0.1, missing}).add("text", Texts{"plain", "a,\"b\"\nc"});
  EXPECT_EQ(to_csv(table), "n,x,text\n1,0.1,plain\n-2,,\"a,\"\"b\"\"\nc\"\n");
}

TEST(Csv, EveryDoubleSurvives) {
  std::mt19937_64 bits(1);
  Numbers values = {0.0, -0.0, 5e-324, 1.7976931348623157e308, 0.1 + 0.2, 1e22, 123456789012345680.0};
  while (values.size() < 2000) {
    const auto word = bits();
    double value = 0;
    static_assert(sizeof value == sizeof word);
    std::memcpy(&value, &word, sizeof value);
    if (std::isfinite(value)) values.push_back(value);
  }
  Table table;
  table.add("x", values).add("half", Numbers(values.size(), 0.5));
  const Numbers again = parse_csv(to_csv(table), "t").numbers("x");
  ASSERT_EQ(again.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(std::memcmp(&again[i], &values[i], sizeof(double)), 0) << values[i];
}

TEST(Csv, ReadsTypesByContent) {
  const Table table = parse_csv("a,b,c\r\n1,2.5,x\r\n2,,\"y,\n\"\"z\"\"\"\r\n", "t");
  EXPECT_EQ(table.integers("a"), (Integers{1, 2}));
  EXPECT_EQ(table.numbers("b")[0], 2.5);
  EXPECT_TRUE(std::isnan(table.numbers("b")[1]));
  EXPECT_EQ(table.texts("c")[1], "y,\n\"z\"");
  EXPECT_EQ(table.numbers("a"), (Numbers{1, 2}));
}

TEST(Csv, AHeaderAloneIsATableWithoutRows) {
  const Table table = parse_csv("a,b\n", "t");
  EXPECT_EQ(table.rows(), 0U);
  EXPECT_TRUE(table.integers("a").empty());
}

TEST(Csv, ErrorsNameTheTableTheLineAndTheColumn) {
  expect_error(Fault::input, "t: the file is empty", [] { parse_csv("", "t"); });
  expect_error(Fault::input, "t: line 3: 1 cells; expected 2", [] { parse_csv("a,b\n1,2\n3\n", "t"); });
  expect_error(Fault::input, "t: line 2: a quoted cell is never closed", [] { parse_csv("a\n\"x\n\n", "t"); });
  expect_error(Fault::input, "t: line 2: text after a closing quote", [] { parse_csv("a\n\"x\"y\n", "t"); });
  expect_error(Fault::input, "t: there is no column 'z'", [] { (void)parse_csv("a\n1\n", "t").numbers("z"); });
  expect_error(Fault::input, "column 'a' holds something else than numbers",
               [] { (void)parse_csv("a\nq\n", "t").numbers("a"); });
  expect_error(Fault::input, "column 'a' holds something else than whole numbers",
               [] { (void)parse_csv("a\n1.5\n", "t").integers("a"); });
}

}  // namespace
}  // namespace headscope
