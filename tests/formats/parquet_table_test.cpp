#include "formats/parquet_table.h"

#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <parquet/arrow/writer.h>

#include <cmath>

#include "core/atomic_file.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::expect_error;
using test::TemporaryFolder;
using ::testing::ElementsAre;

template <class Builder, class... Values>
std::shared_ptr<arrow::Array> array_of(std::shared_ptr<arrow::DataType> type, Values... values) {
  Builder builder(std::move(type), arrow::default_memory_pool());
  const auto append = [&](auto value) {
    if constexpr (std::is_same_v<decltype(value), std::nullptr_t>)
      EXPECT_TRUE(builder.AppendNull().ok());
    else if constexpr (std::is_arithmetic_v<decltype(value)>)
      EXPECT_TRUE(builder.Append(static_cast<typename Builder::value_type>(value)).ok());
    else
      EXPECT_TRUE(builder.Append(value).ok());
  };
  (append(values), ...);
  return *builder.Finish();
}

// A file of another program: narrow types, nulls, categories, and a column that we cannot hold.
std::string foreign_file() {
  const auto lists = *arrow::FixedSizeListArray::FromArrays(array_of<arrow::FloatBuilder>(arrow::float32(), 1, 2, 3, 4),
                                                            /*list_size=*/2);
  const auto codes = array_of<arrow::Int8Builder>(arrow::int8(), 1, 0);
  const auto names = array_of<arrow::StringBuilder>(arrow::utf8(), "train", "probe");
  const auto categories = *arrow::DictionaryArray::FromArrays(codes, names);
  const std::vector<std::pair<std::string, std::shared_ptr<arrow::Array>>> columns = {
      {"narrow", array_of<arrow::Int16Builder>(arrow::int16(), 7, -8)},
      {"flag", array_of<arrow::BooleanBuilder>(arrow::boolean(), true, false)},
      {"gap", array_of<arrow::Int32Builder>(arrow::int32(), 5, nullptr)},
      {"large", array_of<arrow::UInt64Builder>(arrow::uint64(), std::uint64_t{1} << 63, 1)},
      {"half", array_of<arrow::FloatBuilder>(arrow::float32(), 0.5F, nullptr)},
      {"text", array_of<arrow::StringBuilder>(arrow::utf8(), "a", nullptr)},
      {"source", categories},
      {"vector", lists},
      {"time", array_of<arrow::TimestampBuilder>(arrow::timestamp(arrow::TimeUnit::MILLI), 1, 2)},
  };
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const auto& [name, array] : columns) {
    fields.push_back(arrow::field(name, array->type()));
    arrays.push_back(array);
  }
  const auto sink = *arrow::io::BufferOutputStream::Create();
  const auto keep_types = parquet::ArrowWriterProperties::Builder().store_schema()->build();
  EXPECT_TRUE(parquet::arrow::WriteTable(*arrow::Table::Make(arrow::schema(fields), arrays),
                                         arrow::default_memory_pool(), sink, /*chunk_size=*/1,
                                         parquet::default_writer_properties(), keep_types)
                  .ok());
  return (*sink->Finish())->ToString();
}

TEST(ParquetTable, ReadsWhatOtherProgramsWrite) {
  const TemporaryFolder folder;
  write_file(folder / "foreign.parquet", foreign_file());
  const Table table = read_parquet(folder / "foreign.parquet");
  EXPECT_EQ(table.rows(), 2U);
  EXPECT_THAT(table.integers("narrow"), ElementsAre(7, -8));
  EXPECT_THAT(table.integers("flag"), ElementsAre(1, 0));
  EXPECT_EQ(table.numbers("gap")[0], 5);
  EXPECT_TRUE(std::isnan(table.numbers("gap")[1]));
  EXPECT_THAT(table.numbers("large"), ElementsAre(std::ldexp(1, 63), 1));
  EXPECT_EQ(table.numbers("half")[0], 0.5);
  EXPECT_TRUE(std::isnan(table.numbers("half")[1]));
  EXPECT_THAT(table.texts("text"), ElementsAre("a", ""));
  EXPECT_THAT(table.texts("source"), ElementsAre("probe", "train"));
  EXPECT_EQ(table.vectors("vector"), (Vectors{{1, 2}, {3, 4}}));
  EXPECT_FALSE(table.has("time"));
  expect_error(Fault::input, "foreign.parquet: column 'half' holds single values, expected vectors",
               [&] { (void)table.vectors("half"); });
}

TEST(ParquetTable, TheSameRowsGiveTheSameBytes) {
  Table table;
  table.add("n", Integers{1, 2}).add("x", Numbers{0.5, std::nan("")}).add("v", Vectors{{1}, {}});
  EXPECT_EQ(to_parquet(table), to_parquet(table));
}

TEST(ParquetTable, ListsOfFloatsAndTextsAndMissingIntegersAreReadBack) {
  const TextLists texts = {{"a", ""}, {}, {"\xE2\x9F\xA8", "b", "c"}};
  const std::string bytes = to_parquet(Table()
                                           .add("weights", FloatVectors{{0.1F, 0.9F}, {1}, {}})
                                           .add("pieces", texts)
                                           .add("at", OptionalIntegers{7, std::nullopt, -1})
                                           .add("whole", OptionalIntegers{7, 8, 9}));
  const Table table = parse_parquet(std::as_bytes(std::span(bytes)), "lists");
  EXPECT_EQ(table.vectors("weights"), (Vectors{{0.1F, 0.9F}, {1}, {}}));
  EXPECT_EQ(table.text_lists("pieces"), texts);
  EXPECT_EQ(table.numbers("at")[0], 7);
  EXPECT_TRUE(std::isnan(table.numbers("at")[1]));
  EXPECT_EQ(table.numbers("at")[2], -1);
  EXPECT_THAT(table.integers("whole"), ElementsAre(7, 8, 9));
  expect_error(Fault::input, "lists: column 'weights' holds something else than lists of texts",
               [&] { (void)table.text_lists("weights"); });
  for (const ColumnValues& values :
       {ColumnValues(texts), ColumnValues(FloatVectors{{1}}), ColumnValues(OptionalIntegers{1})})
    expect_error(Fault::runtime, "column x of a CSV", [&] { to_csv(Table().add("x", values)); });
  // A file that ends anywhere is refused.
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(parse_parquet(std::as_bytes(std::span(bytes)).first(size), "cut"), Error) << size;
}

TEST(ParquetTable, ATableWithoutRowsKeepsItsColumns) {
  const TemporaryFolder folder;
  write_file(folder / "empty.parquet", to_parquet(Table().add("n", Integers{}).add("v", Vectors{})));
  const Table table = read_parquet(folder / "empty.parquet");
  EXPECT_EQ(table.rows(), 0U);
  EXPECT_TRUE(table.has("n") && table.vectors("v").empty());
}

}  // namespace
}  // namespace headscope
