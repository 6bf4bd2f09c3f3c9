// What small files of tables and texts may claim: the readers refuse before they take memory for it.
#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <parquet/arrow/writer.h>
#include <sys/stat.h>

#include "core/atomic_file.h"
#include "formats/captured_thrift.h"
#include "formats/parquet_table.h"
#include "formats/text_input.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "support/time_limit.h"

namespace headscope {
namespace {

using test::expect_error;
using test::TemporaryFolder;
using test::Thrift;
namespace footer = test::footer;

// One column, compressed, with Arrow's own types kept: categories stay a dictionary when they are read.
std::string file_of(const std::string& name, const std::shared_ptr<arrow::Array>& values) {
  const auto table = arrow::Table::Make(arrow::schema({arrow::field(name, values->type())}), {values});
  const auto sink = *arrow::io::BufferOutputStream::Create();
  const auto properties = parquet::WriterProperties::Builder().compression(arrow::Compression::ZSTD)->build();
  EXPECT_TRUE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), sink, 1 << 30, properties,
                                         parquet::ArrowWriterProperties::Builder().store_schema()->build())
                  .ok());
  return (*sink->Finish())->ToString();
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

Table parse(std::string_view file) {
  return parse_parquet(bytes_of(file), "small.parquet");
}

std::int64_t length_of_texts(std::string_view file) {
  std::int64_t length = 0;
  for_each_text(bytes_of(file), "small.parquet", "text", [&](std::string_view text) {
    length += static_cast<std::int64_t>(text.size());
    return true;
  });
  return length;
}

// Bits in the file and in Arrow, eight bytes each in a table.
std::string file_of_booleans(std::int64_t rows) {
  arrow::BooleanBuilder builder;
  EXPECT_TRUE(builder.AppendValues(rows, false).ok());
  return file_of("flag", *builder.Finish());
}

// `rows` times the same text of `length` bytes, stored once.
std::string file_of_one_text(std::int64_t rows, std::size_t length, bool as_category) {
  if (!as_category) {
    arrow::StringBuilder builder;
    for (std::int64_t row = 0; row < rows; ++row) EXPECT_TRUE(builder.Append(std::string(length, 'a')).ok());
    return file_of("text", *builder.Finish());
  }
  arrow::StringBuilder name;
  EXPECT_TRUE(name.Append(std::string(length, 'a')).ok());
  arrow::Int32Builder codes;
  for (std::int64_t row = 0; row < rows; ++row) EXPECT_TRUE(codes.Append(0).ok());
  return file_of("text", *arrow::DictionaryArray::FromArrays(*codes.Finish(), *name.Finish()));
}

// The footer promises so many rows, and so many values of every column.
std::string promising(std::string_view file, std::int64_t rows) {
  return test::with_footer(file, [&](Thrift& tree) {
    tree[footer::num_rows].number = rows;
    Thrift& group = tree[footer::row_groups].items.at(0);
    group[footer::group_rows].number = rows;
    for (Thrift& chunk : group[footer::columns].items) chunk[footer::meta_data][footer::num_values].number = rows;
  });
}

TEST(ParquetBounds, RowsThatTheFooterPromises) {
  const std::string table = to_parquet(Table().add("step", Integers{1, 2}).add("text", Texts{"a", "b"}));
  const TemporaryFolder folder;
  for (const std::int64_t rows : {std::int64_t{-1}, std::int64_t{1} << 28, std::int64_t{1} << 62}) {
    const std::string file = promising(table, rows);
    write_file(folder / "t.parquet", file);
    expect_error(Fault::input, "rows in row group 0, impossible in", [&] { parse(file); });
    expect_error(Fault::input, "rows in row group 0, impossible in", [&] { length_of_texts(file); });
    expect_error(Fault::input, "rows in row group 0, impossible in", [&] { parquet_rows(folder / "t.parquet"); });
  }
  expect_error(Fault::input, "column 'text', row group 0: the footer promises 9000000 values",
               [&] { parse(promising(table, 9'000'000)); });  // 32 bytes each, in memory
}

TEST(ParquetBounds, PagesThatLieOutsideTheFile) {
  const std::string table = to_parquet(Table().add("step", Integers{1, 2}).add("text", Texts{"a", "b"}));
  const auto refused = [&](int field, std::int64_t claim) {
    const std::string file =
        test::with_footer(table, [&](Thrift& tree) { test::column_of(tree, "text")[field].number = claim; });
    const std::string expected = "column 'text', row group 0: the footer puts its pages at byte";
    expect_error(Fault::input, expected, [&] { parse(file); });
    expect_error(Fault::input, expected, [&] { length_of_texts(file); });
  };
  refused(footer::data_page_offset, -1);
  refused(footer::compressed_size, -1);
  refused(footer::compressed_size, 1 << 20);
  refused(footer::compressed_size, std::int64_t{1} << 62);
}

TEST(ParquetBounds, ATableThatIsLargeOnlyInMemory) {
  const std::string good = file_of_booleans(1 << 20), bad = file_of_booleans(40 << 20);
  EXPECT_LT(bad.size(), 1U << 18);
  EXPECT_EQ(parse(good).rows(), 1U << 20);
  expect_error(Fault::input, "rows in row group 33, impossible in", [&] { parse(bad); });
}

TEST(ParquetBounds, PartsThatAreLargeOnlyTogether) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "t");
  for (const char* name : {"part-00000.parquet", "part-00001.parquet", "part-00002.parquet"})
    write_file(folder / "t" / name, file_of_booleans(16 << 20));
  std::size_t rows = 0;
  expect_error(Fault::input, "part-00002.parquet: damaged: column 'flag'",
               [&] { scan_parquet(folder / "t", {"flag"}, [&](const Table& part) { rows += part.rows(); }); });
  EXPECT_EQ(rows, 32U << 20);
}

TEST(ParquetBounds, ACategoryThatIsLongAndFrequent) {
  const std::string good = file_of_one_text(100, 1 << 20, true), bad = file_of_one_text(1000, 1 << 20, true);
  EXPECT_LT(bad.size(), 1U << 16);
  EXPECT_EQ(parse(good).texts("text")[99].size(), 1U << 20);
  expect_error(Fault::input, "its values take more memory than a file of this size can mean", [&] { parse(bad); });
}

TEST(ParquetBounds, ATextThatIsLongAndFrequent) {
  const std::string good = file_of_one_text(20, 1 << 19, false), bad = file_of_one_text(600, 1 << 19, false);
  EXPECT_LT(bad.size(), 1U << 16);
  EXPECT_EQ(length_of_texts(good), 20 << 19);
  expect_error(Fault::input, "the texts so far are more than", [&] { length_of_texts(bad); });
}

TEST(ParquetBounds, CodesOutsideTheirCategories) {
  std::string file = file_of_one_text(3, 1, true);
  auto pages = test::pages_of(file, "text");
  ASSERT_EQ(pages.size(), 2U);
  // The data page is compressed: an uncompressed one takes its place. Levels (all there), bit width 8, a run of three
  // 7s.
  const std::string body = std::string("\2\0\0\0\6\1", 6) + "\x08\x06\x07";
  pages[1].body = body;
  pages[1].header[test::page::compressed_size].number = static_cast<std::int64_t>(body.size());
  pages[1].header[test::page::uncompressed_size].number = static_cast<std::int64_t>(body.size());
  auto dictionary = std::string("\1\0\0\0a", 5);
  pages[0].body = dictionary;
  pages[0].header[test::page::compressed_size].number = 5;
  file = test::with_pages(file, "text", pages);
  file = test::with_footer(file, [](Thrift& tree) { test::column_of(tree, "text")[footer::codec].number = 0; });
  expect_error(Fault::input, "small.parquet: is damaged", [&] { parse(file); });
}

// libparquet follows the schema by recursion: deep enough, it would overflow the stack.
TEST(ParquetBounds, ASchemaOfGroupsInGroups) {
  const std::string file = test::with_footer(to_parquet(Table().add("step", Integers{1})), [](Thrift& tree) {
    constexpr int repetition = 3, name = 4, children = 5;  // of SchemaElement
    std::vector<Thrift>& schema = tree[footer::schema].items;
    Thrift group = schema[0];
    group[repetition].type = Thrift::i32;
    group[name].bytes = "group";
    group[children].number = 1;
    schema.insert(schema.begin() + 1, 100'000, group);
  });
  expect_error(Fault::input, "small.parquet: is damaged", [&] { parse(file); });
  expect_error(Fault::input, "small.parquet: is damaged, or not a Parquet table", [&] { length_of_texts(file); });
}

TEST(ParquetBounds, ANamedPipeIsRefusedAtOnce) {
  const test::TimeLimit limit(10);
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "t");
  const auto pipe = folder / "t" / "part-00000.parquet";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& place : {folder / "t", pipe}) {
    expect_error(Fault::input, "part-00000.parquet: not a regular file", [&] { read_parquet(place); });
    expect_error(Fault::input, "part-00000.parquet: not a regular file",
                 [&] { scan_parquet(place, {"step"}, [](const Table&) {}); });
  }
  expect_error(Fault::input, "part-00000.parquet: not a regular file", [&] { parquet_rows(pipe); });
  expect_error(Fault::input, "part-00000.parquet: not a regular file",
               [&] { for_each_text(pipe, "text", [](std::string_view) { return true; }); });
}

// A group before the wanted column: libparquet counts its fields, Arrow the columns.
TEST(ParquetTable, ColumnsAreFoundBehindAGroup) {
  const auto numbers = [](std::vector<std::int64_t> values) {
    arrow::Int64Builder builder;
    EXPECT_TRUE(builder.AppendValues(values).ok());
    return *builder.Finish();
  };
  const auto group = *arrow::StructArray::Make({numbers({1, 2}), numbers({3, 4})}, std::vector<std::string>{"a", "b"});
  const auto steps = numbers({5, 6});
  const auto table = arrow::Table::Make(
      arrow::schema({arrow::field("group", group->type()), arrow::field("step", steps->type())}), {group, steps});
  const auto sink = *arrow::io::BufferOutputStream::Create();
  ASSERT_TRUE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), sink).ok());
  const TemporaryFolder folder;
  write_file(folder / "t.parquet", (*sink->Finish())->ToString());
  Integers found;
  scan_parquet(folder / "t.parquet", {"step"}, [&](const Table& rows) { found = rows.integers("step"); });
  EXPECT_EQ(found, (Integers{5, 6}));
  EXPECT_EQ(read_parquet(folder / "t.parquet").integers("step"), (Integers{5, 6}));
}

}  // namespace
}  // namespace headscope
