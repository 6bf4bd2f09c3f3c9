// Repetition and definition levels, against levels written one by one by the definition of the format.
#include <gmock/gmock.h>

#include <random>

#include "formats/parquet_levels.h"

namespace headscope {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;

void put_varint(Bytes& out, std::size_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::uint8_t>(value | 0x80));
  out.push_back(static_cast<std::uint8_t>(value));
}

// Encodes levels as runs of random kinds and lengths.
Bytes encode(const std::vector<int>& levels, int bits, std::mt19937& random) {
  Bytes out;
  for (std::size_t i = 0; i < levels.size();) {
    std::size_t same = 1;
    while (i + same < levels.size() && levels[i + same] == levels[i]) ++same;
    if (random() % 3 != 0) {
      const std::size_t count = 1 + random() % same;
      put_varint(out, count << 1);
      out.push_back(static_cast<std::uint8_t>(levels[i]));
      i += count;
      continue;
    }
    const std::size_t groups = 1 + random() % 3;
    if (i + groups * 8 > levels.size() && random() % 2 != 0) continue;
    put_varint(out, (groups << 1) | 1);
    for (std::size_t byte = 0; byte < groups * static_cast<std::size_t>(bits); ++byte) {
      int packed = 0;
      for (int bit = 0; bit < 8; ++bit) {
        const std::size_t at = byte * 8 + static_cast<std::size_t>(bit);
        const std::size_t level = i + at / static_cast<std::size_t>(bits);
        if (level < levels.size() && ((levels[level] >> (at % static_cast<std::size_t>(bits))) & 1) != 0)
          packed |= 1 << bit;
      }
      out.push_back(static_cast<std::uint8_t>(packed));
    }
    i += groups * 8;
  }
  return out;
}

std::vector<int> decode(const Bytes& bytes, int max_level, std::size_t count) {
  std::vector<int> levels;
  LevelRuns runs(bytes, max_level, count);
  for (LevelRun run; runs.next(run);) {
    for (std::size_t i = 0; i < run.count; ++i) levels.push_back(run.at(i));
  }
  return levels;
}

TEST(ParquetLevels, RunsDecodeToWhatWasEncoded) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    const int max_level = 1 + static_cast<int>(random() % 3);
    std::vector<int> levels(1 + random() % 60);
    for (auto& level : levels) level = random() % 4 == 0 ? static_cast<int>(random() % (max_level + 1U)) : max_level;
    const auto bytes = encode(levels, max_level > 1 ? 2 : 1, random);
    ASSERT_EQ(decode(bytes, max_level, levels.size()), levels);

    const auto below = first_below(bytes, max_level, levels.size());
    const auto expected = std::find_if(levels.begin(), levels.end(), [&](int level) { return level < max_level; });
    ASSERT_EQ(below.has_value(), expected != levels.end());
    if (below) {
      ASSERT_EQ(below->index, static_cast<std::size_t>(expected - levels.begin()));
      ASSERT_EQ(below->level, *expected);
    }
  }
}

TEST(ParquetLevels, RowsAreDelimitedInPagesOfAnyLength) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 2000; ++trial) {
    const std::size_t dim = 1 + random() % 20;
    const std::size_t rows = 1 + random() % 20;
    std::vector<int> levels;
    for (std::size_t i = 0; i < dim * rows; ++i) levels.push_back(i % dim == 0 ? 0 : 1);
    EqualRows counted;
    counted.start_chunk();
    for (std::size_t at = 0; at < levels.size();) {
      const std::size_t size = std::min(levels.size() - at, 1 + random() % 50);
      const std::vector<int> page(levels.begin() + static_cast<std::ptrdiff_t>(at),
                                  levels.begin() + static_cast<std::ptrdiff_t>(at + size));
      counted.follow(encode(page, 1, random), size);
      at += size;
    }
    counted.end_chunk();
    ASSERT_EQ(counted.rows(), rows);
    ASSERT_EQ(counted.components(), dim);
  }
}

std::string fault(const std::function<void()>& body) {
  try {
    body();
  } catch (const ColumnFault& fault) {
    return fault.what();
  }
  return "nothing";
}

TEST(ParquetLevels, BytesThatEndEarlyAreAFault) {
  EXPECT_THAT(fault([] { decode({}, 1, 1); }), HasSubstr("end 1 short"));
  EXPECT_THAT(fault([] { decode({8}, 1, 4); }), HasSubstr("end within a run"));
  EXPECT_THAT(fault([] { decode({8, 1}, 1, 5); }), HasSubstr("end 1 short"));
  EXPECT_THAT(fault([] { decode({0x03}, 1, 8); }), HasSubstr("end 8 short"));
  EXPECT_THAT(fault([] { decode({0x05, 0xff}, 1, 9); }), HasSubstr("end 1 short"));
  EXPECT_THAT(fault([] { decode({0x80}, 1, 1); }), HasSubstr("end 1 short"));
  EXPECT_THAT(fault([] { decode({0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 1, 1); }), HasSubstr("impossible run length"));
  EXPECT_THAT(fault([] { decode({0xff, 0xff, 0xff, 0xff, 0x7f, 0x01}, 1, 1); }), HasSubstr("impossible run length"));
}

TEST(ParquetLevels, LevelsAboveTheLargestAreAFault) {
  EXPECT_THAT(fault([] { decode({4, 2}, 1, 2); }), HasSubstr("hold 2, at most 1"));
  EXPECT_THAT(fault([] { first_below(Bytes{0x03, 0xff, 0xff}, 2, 8); }), HasSubstr("hold 3, at most 2"));
}

TEST(ParquetLevels, AChunkStartsWithARow) {
  EXPECT_THAT(fault([] { EqualRows().follow(Bytes{4, 1}, 2); }), HasSubstr("starts in the middle of row 0"));
}

TEST(ParquetLevels, LongRunsOfNothingEnd) {
  EXPECT_THAT(fault([] { decode(Bytes(1000, 0x01), 1, 1); }), HasSubstr("end 1 short"));
  EXPECT_THAT(fault([] { decode(Bytes(1000, 0x00), 1, 1); }), HasSubstr("end 1 short"));
}

}  // namespace
}  // namespace headscope
