// What the reader of captured vectors accepts, and that it reads exactly what was written.
#include "formats/captured_vectors.h"

#include <arrow/io/memory.h>
#include <gmock/gmock.h>
#include <parquet/column_writer.h>
#include <parquet/file_writer.h>
#include <parquet/schema.h>
#include <xxhash.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "formats/captured_files.h"

namespace headscope::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Properties = parquet::WriterProperties::Builder;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct Storage {
  std::string name;
  Capture::Change change;
};
void PrintTo(const Storage& storage, std::ostream* out) {
  *out << storage.name;
}

class CapturedStorage : public ::testing::TestWithParam<Storage> {};

TEST_P(CapturedStorage, ReadsWhatWasWritten) {
  for (const auto& element : {arrow::float16(), arrow::float32(), arrow::float64()}) {
    for (const auto& type : {arrow::list(element), arrow::large_list(element), arrow::fixed_size_list(element, 7)}) {
      SCOPED_TRACE(type->ToString());
      const auto captured = parse(Capture(101, 7, type).write(GetParam().change, /*rows_per_group=*/40));
      expect_capture(captured, 101, 7);
      EXPECT_EQ(captured.vector64.empty(), element->id() != arrow::Type::DOUBLE);
    }
  }
}

Storage codec(const std::string& name, parquet::Compression::type type) {
  return {name, [type](Properties& p) { p.compression(type); }};
}

const std::vector<Storage> storages = {
    codec("none", parquet::Compression::UNCOMPRESSED),
    codec("snappy", parquet::Compression::SNAPPY),
    codec("gzip", parquet::Compression::GZIP),
    codec("lz4", parquet::Compression::LZ4),
    codec("lz4_hadoop", parquet::Compression::LZ4_HADOOP),
    codec("zstd", parquet::Compression::ZSTD),
    codec("brotli", parquet::Compression::BROTLI),
    {"plain", [](Properties& p) { p.disable_dictionary(); }},
    {"byte_stream_split",
     [](Properties& p) {
       p.disable_dictionary()->encoding("vector.list.element", parquet::Encoding::BYTE_STREAM_SPLIT);
       p.encoding("bucket", parquet::Encoding::BYTE_STREAM_SPLIT);
     }},
    {"delta",
     [](Properties& p) {
       p.disable_dictionary()->encoding("position", parquet::Encoding::DELTA_BINARY_PACKED);
       p.encoding("bucket", parquet::Encoding::DELTA_BINARY_PACKED);
     }},
    {"pages_v2", [](Properties& p) { p.data_page_version(parquet::ParquetDataPageVersion::V2); }},
    {"pages_v2_plain",
     [](Properties& p) { p.data_page_version(parquet::ParquetDataPageVersion::V2)->disable_dictionary(); }},
    {"checksums", [](Properties& p) { p.enable_page_checksum(); }},
    {"small_pages", [](Properties& p) { p.disable_dictionary()->data_pagesize(64)->write_batch_size(3); }},
    {"dictionary_overflows",
     [](Properties& p) { p.dictionary_pagesize_limit(32)->write_batch_size(5)->data_pagesize(64); }},
    {"page_index", [](Properties& p) { p.enable_write_page_index()->data_pagesize(64)->write_batch_size(3); }},
};
INSTANTIATE_TEST_SUITE_P(All, CapturedStorage, ::testing::ValuesIn(storages),
                         [](const auto& param) { return param.param.name; });

TEST(CapturedVectors, RowsOfEveryLengthAreDelimited) {
  // Short rows lie in bit-packed runs of repetition levels, long ones in run-length runs, most in a mixture.
  for (std::int64_t dim = 1; dim <= 40; ++dim) {
    SCOPED_TRACE(dim);
    expect_capture(parse(Capture(37, dim).write()), 37, static_cast<std::size_t>(dim));
  }
  expect_capture(parse(Capture(1, 1).write()), 1, 1);
  expect_capture(parse(Capture(1, 300).write()), 1, 300);
}

TEST(CapturedVectors, RowsAreDelimitedInPagesOfAnyLength) {
  // Many times the values that are read at once; rows continue over pages.
  for (const std::int64_t dim : {1, 2, 7, 64, 300, 5000}) {
    SCOPED_TRACE(dim);
    const std::int64_t rows = std::max<std::int64_t>(5, 12000 / dim);
    for (const std::int64_t page : {64, 1000, 1 << 20}) {
      const auto change = [&](Properties& p) { p.disable_dictionary()->data_pagesize(page)->write_batch_size(33); };
      expect_capture(parse(Capture(rows, dim).write(change, rows / 2 + 1)), static_cast<std::size_t>(rows),
                     static_cast<std::size_t>(dim));
    }
  }
}

TEST(CapturedVectors, PagesWithoutValuesAreSkipped) {
  const std::string file = Capture(20, 3).nullable(false).write(
      [](Properties& p) { p.disable_dictionary()->compression(parquet::Compression::UNCOMPRESSED); });
  const auto pages = pages_of(file, "position");
  ASSERT_EQ(pages.size(), 1U);
  Page empty = pages[0];
  empty.body.clear();
  empty.header[page::compressed_size].number = empty.header[page::uncompressed_size].number = 0;
  empty.header[page::data][page::num_values].number = 0;
  expect_capture(parse(with_pages(file, "position", {empty, pages[0]})), 20, 3);
}

TEST(CapturedVectors, NullabilityFlagsOfTheSchemaDoNotMatter) {
  const auto required = arrow::list(arrow::field("item", arrow::float32(), /*nullable=*/false));
  for (const bool nullable : {true, false}) {
    expect_capture(parse(Capture(20, 3, required).nullable(nullable).write()), 20, 3);
    expect_capture(parse(Capture(20, 3).nullable(nullable).write()), 20, 3);
  }
}

TEST(CapturedVectors, IntegersOfEveryWidthAreRead) {
  for (const auto& type : {arrow::int8(), arrow::int16(), arrow::int32(), arrow::int64(), arrow::uint8(),
                           arrow::uint16(), arrow::uint32(), arrow::uint64()}) {
    SCOPED_TRACE(type->ToString());
    const auto captured = parse(Capture(3, 2)
                                    .set("bucket", type, "[0, 127, 5]")
                                    .set("position", type, "[7, 6, 5]")
                                    .set("example_id", type, "[1, 2, 3]")
                                    .write());
    EXPECT_THAT(captured.bucket, ElementsAre(0, 127, 5));
    EXPECT_THAT(captured.position, ElementsAre(7, 6, 5));
    EXPECT_THAT(captured.example_id, ElementsAre(1, 2, 3));
  }
  const auto wide = parse(Capture(2, 2)
                              .set("position", arrow::uint32(), "[4294967295, 0]")
                              .set("example_id", arrow::int64(), "[-9223372036854775808, 9223372036854775807]")
                              .write());
  EXPECT_THAT(wide.position, ElementsAre(4294967295, 0));
  EXPECT_THAT(wide.example_id,
              ElementsAre(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()));
}

TEST(CapturedVectors, UnsortedBucketsKeepTheOrderOfTheFile) {
  const auto captured = parse(Capture(4, 1).set("bucket", arrow::int32(), "[3, 0, 1000000, 0]").write());
  EXPECT_THAT(captured.bucket, ElementsAre(3, 0, 1000000, 0));
}

TEST(CapturedVectors, WithoutExampleIdTheRowNumberStandsIn) {
  EXPECT_THAT(parse(Capture(4, 2).drop("example_id").write({}, 3)).example_id, ElementsAre(0, 1, 2, 3));
}

TEST(CapturedVectors, SlidingWindowMayBeAnyNumberNullOrAbsent) {
  using ::testing::DoubleEq;
  using ::testing::NanSensitiveDoubleEq;
  EXPECT_THAT(parse(Capture(4, 2).drop("sliding_window").write()).sliding_window, IsEmpty());
  EXPECT_THAT(parse(Capture(2, 2).write()).sliding_window,
              ElementsAre(NanSensitiveDoubleEq(nan), NanSensitiveDoubleEq(nan)));
  for (const auto& type : {arrow::int16(), arrow::uint32(), arrow::int64(), arrow::uint64(), arrow::float16(),
                           arrow::float32(), arrow::float64()}) {
    SCOPED_TRACE(type->ToString());
    const Capture capture = Capture(7, 2).set("sliding_window", type, "[1024, null, null, 12, 0, null, 7]");
    for (const std::int64_t rows_per_group : {1, 2, 3, 7}) {
      EXPECT_THAT(parse(capture.write({}, rows_per_group)).sliding_window,
                  ElementsAre(1024.0, NanSensitiveDoubleEq(nan), NanSensitiveDoubleEq(nan), 12.0, 0.0,
                              NanSensitiveDoubleEq(nan), 7.0));
    }
  }
  EXPECT_THAT(
      parse(Capture(2, 2).set("sliding_window", arrow::uint64(), "[18446744073709551615, 1]").write()).sliding_window,
      ElementsAre(DoubleEq(18446744073709551616.0), 1.0));
  EXPECT_THAT(parse(Capture(2, 2).set("sliding_window", arrow::float64(), "[NaN, -1]").write()).sliding_window,
              ElementsAre(NanSensitiveDoubleEq(nan), -1.0));
}

TEST(CapturedVectors, EveryFiniteHalfIsWidenedExactly) {
  // 63,488 bit patterns; the oracle is the definition of binary16.
  std::vector<std::uint16_t> bits;
  for (unsigned b = 0; b < 0x10000; ++b) {
    if ((b & 0x7c00U) != 0x7c00U) bits.push_back(static_cast<std::uint16_t>(b));
  }
  constexpr std::int64_t dim = 128;
  const auto rows = static_cast<std::int64_t>(bits.size()) / dim;
  const auto values =
      std::make_shared<arrow::HalfFloatArray>(static_cast<std::int64_t>(bits.size()), arrow::Buffer::Wrap(bits));
  const auto vectors = arrow::FixedSizeListArray::FromArrays(values, dim).ValueOrDie();
  for (const bool dictionary : {true, false}) {
    const auto captured = parse(Capture(rows, 1).set("vector", vectors).write([&](Properties& p) {
      if (!dictionary) p.disable_dictionary();
    }));
    ASSERT_EQ(captured.vector32.size(), bits.size());
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const int exponent = (bits[i] >> 10) & 31;
      const int mantissa = bits[i] & 1023;
      const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
      const double expected = std::copysign(magnitude, (bits[i] & 0x8000) != 0 ? -1.0 : 1.0);
      ASSERT_EQ(static_cast<double>(captured.vector32[i]), expected) << i;
      ASSERT_EQ(std::signbit(captured.vector32[i]), std::signbit(expected)) << i;
    }
  }
}

TEST(CapturedVectors, ExtraColumnsAreNotDecoded) {
  const std::string file = Capture(20, 3).write();
  auto pages = pages_of(file, "token_str");
  for (auto& one : pages) one.body.assign(one.body.size(), '\xff');
  expect_capture(parse(with_pages(file, "token_str", pages)), 20, 3);
  // The same damage in a column that is used is noticed.
  auto used = pages_of(file, "position");
  for (auto& one : used) one.body.assign(one.body.size(), '\xff');
  refusal(with_pages(file, "position", used));
}

TEST(CapturedVectors, RowGroupsWithoutRowsAreSkipped) {
  const std::string file = with_footer(Capture(20, 3).write(), [](Thrift& tree) {
    auto& groups = tree[footer::row_groups].items;
    Thrift none = groups[0];
    none[footer::group_rows].number = 0;
    groups.insert(groups.begin(), none);
    groups.push_back(none);
  });
  expect_capture(parse(file), 20, 3);
}

TEST(CapturedVectors, TheHashIsThatOfTheFile) {
  const CaptureFolder folder;
  const std::string bytes = Capture().write();
  const auto captured = read_captured_vectors(folder.file(bytes));
  expect_capture(captured, 6, 4);
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  std::string hex;
  for (const unsigned char byte : canonical.digest) hex += fmt::format("{:02x}", byte);
  EXPECT_EQ(captured.content_hash, hex);
  EXPECT_NE(parse(Capture(7, 4).write()).content_hash, hex);
}

TEST(CapturedVectors, FilesOfOtherWritersAreRead) {
  // Written by polars and DuckDB (make_captures.py), whose Parquet code is not Arrow's.
  for (const char* name : {"polars_list", "polars_array64", "duckdb_v1", "duckdb_v2"}) {
    SCOPED_TRACE(name);
    const auto captured = read_captured_vectors(fmt::format("tests/formats/captures/{}.parquet", name));
    ASSERT_EQ(captured.rows, 40U);
    ASSERT_EQ(captured.dim, 5U);
    ASSERT_EQ(captured.sliding_window.size(), 40U);
    for (std::int64_t row = 0; row < 40; ++row) {
      const auto i = static_cast<std::size_t>(row);
      EXPECT_EQ(captured.bucket[i], row / 10);
      EXPECT_EQ(captured.example_id[i], row % 3 - 1);
      EXPECT_EQ(captured.position[i], row * 5);
      EXPECT_TRUE(row % 4 == 0 ? std::isnan(captured.sliding_window[i])
                               : captured.sliding_window[i] == static_cast<double>(row));
      for (std::size_t c = 0; c < 5; ++c) {
        const double value = captured.vector64.empty() ? static_cast<double>(captured.vector32[i * 5 + c])
                                                       : captured.vector64[i * 5 + c];
        EXPECT_EQ(value, expected_component(row, static_cast<std::int64_t>(c)));
      }
    }
  }
}

// ---- Lists in the forms that Arrow no longer writes.

using parquet::Repetition;
using parquet::Type;
using parquet::schema::GroupNode;
using parquet::schema::NodePtr;
using parquet::schema::PrimitiveNode;

// Six rows of two float32 components in a list column of any shape; `definition` is the level of a present component.
std::string write_list(const NodePtr& vector, std::int16_t definition) {
  const auto integer = [](const char* name) { return PrimitiveNode::Make(name, Repetition::REQUIRED, Type::INT64); };
  const auto root = std::static_pointer_cast<GroupNode>(
      GroupNode::Make("schema", Repetition::REQUIRED, {vector, integer("bucket"), integer("position")}));
  const auto sink = arrow::io::BufferOutputStream::Create().ValueOrDie();
  const auto writer = parquet::ParquetFileWriter::Open(sink, root);
  auto* group = writer->AppendRowGroup();
  std::vector<float> values;
  std::vector<std::int64_t> buckets;
  std::vector<std::int64_t> positions;
  for (std::int64_t row = 0; row < 6; ++row) {
    for (int c = 0; c < 2; ++c) values.push_back(static_cast<float>(expected_component(row, c)));
    buckets.push_back(row / 2);
    positions.push_back(5 * row);
  }
  const std::vector<std::int16_t> definitions(12, definition);
  const std::vector<std::int16_t> repetitions{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
  static_cast<parquet::FloatWriter*>(group->NextColumn())
      ->WriteBatch(12, definitions.data(), repetitions.data(), values.data());
  static_cast<parquet::Int64Writer*>(group->NextColumn())->WriteBatch(6, nullptr, nullptr, buckets.data());
  static_cast<parquet::Int64Writer*>(group->NextColumn())->WriteBatch(6, nullptr, nullptr, positions.data());
  writer->Close();
  return sink->Finish().ValueOrDie()->ToString();
}

NodePtr number(const char* name, Repetition::type repetition) {
  return PrimitiveNode::Make(name, repetition, Type::FLOAT);
}

TEST(CapturedVectors, ListsOfAllShapesAreRead) {
  const auto list = parquet::LogicalType::List();
  const std::vector<std::pair<std::string, std::string>> files = {
      {"a repeated field", write_list(number("vector", Repetition::REPEATED), 1)},
      {"two levels",
       write_list(GroupNode::Make("vector", Repetition::OPTIONAL, {number("array", Repetition::REPEATED)}, list), 2)},
      {"two levels, required",
       write_list(GroupNode::Make("vector", Repetition::REQUIRED, {number("vector_tuple", Repetition::REPEATED)}, list),
                  1)},
      {"three levels of old names",
       write_list(GroupNode::Make(
                      "vector", Repetition::OPTIONAL,
                      {GroupNode::Make("bag", Repetition::REPEATED, {number("array_element", Repetition::OPTIONAL)})}),
                  3)},
      {"three levels, required",
       write_list(GroupNode::Make(
                      "vector", Repetition::REQUIRED,
                      {GroupNode::Make("list", Repetition::REPEATED, {number("item", Repetition::REQUIRED)})}, list),
                  1)},
  };
  for (const auto& [name, file] : files) {
    SCOPED_TRACE(name);
    const auto captured = parse(file);
    EXPECT_EQ(captured.dim, 2U);
    ASSERT_EQ(captured.vector32.size(), 12U);
    for (std::size_t i = 0; i < 12; ++i) {
      EXPECT_EQ(static_cast<double>(captured.vector32[i]),
                expected_component(static_cast<std::int64_t>(i / 2), static_cast<std::int64_t>(i % 2)));
    }
    EXPECT_THAT(captured.example_id, ElementsAre(0, 1, 2, 3, 4, 5));
  }
}

TEST(CapturedVectors, ListsOfStructsThatHideALevelAreRefused) {
  const auto hidden =
      GroupNode::Make("vector", Repetition::REPEATED,
                      {GroupNode::Make("x", Repetition::OPTIONAL, {number("y", Repetition::REQUIRED)})});
  EXPECT_THAT(refusal(write_list(hidden, 2)), ::testing::HasSubstr("expected a list of float16, float32 or float64"));
}

// ---- Rows with NaN or infinity.

TEST(CapturedVectors, RowsThatAreNotFiniteAreLeftOutOnRequest) {
  for (const auto& element : {arrow::float16(), arrow::float32(), arrow::float64()}) {
    const std::string file = Capture(5, 2)
                                 .set("vector", arrow::list(element), "[[1, 2], [NaN, 1], [3, 4], [5, -Inf], [6, 7]]")
                                 .set("sliding_window", arrow::int64(), "[1, 2, null, 4, 5]")
                                 .drop("example_id")
                                 .write({}, 2);
    const auto captured = parse(file, {.drop_nonfinite = true});
    EXPECT_EQ(captured.rows, 3U);
    EXPECT_EQ(captured.dropped_nonfinite, 2U);
    EXPECT_THAT(captured.bucket, ElementsAre(0, 1, 2));
    EXPECT_THAT(captured.position, ElementsAre(0, 10, 20));
    EXPECT_THAT(captured.example_id, ElementsAre(0, 2, 4));  // the rows of the file
    EXPECT_THAT(captured.sliding_window, ElementsAre(1.0, ::testing::NanSensitiveDoubleEq(nan), 5.0));
    if (element->id() == arrow::Type::DOUBLE) {
      EXPECT_THAT(captured.vector64, ElementsAre(1, 2, 3, 4, 6, 7));
    } else {
      EXPECT_THAT(captured.vector32, ElementsAre(1, 2, 3, 4, 6, 7));
    }
  }
}

TEST(CapturedVectors, NothingIsLeftOutOfAFiniteFile) {
  expect_capture(parse(Capture(20, 3).write(), {.drop_nonfinite = true}), 20, 3);
}

}  // namespace
}  // namespace headscope::test
