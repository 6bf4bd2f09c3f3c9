#include "formats/parquet_table.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/io/memory.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>

#include "core/atomic_file.h"
#include "core/error.h"
#include "formats/part_table.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using Tables = std::vector<std::shared_ptr<arrow::Table>>;

// Rows of one row group: large enough to compress well, small enough to be joined in memory.
constexpr std::int64_t group_rows = 1 << 20;

template <class T>
T value_of(arrow::Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().message());
  return std::move(result).ValueUnsafe();
}

void check(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

// What goes wrong in a file that is read, in one line with its name.
template <class Body>
auto reading(const fs::path& file, Body&& body) {
  try {
    return body();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    fail_runtime("{}: not enough memory for its rows", file.string());
  } catch (const std::exception& error) {
    fail_input("{}: is damaged, or not a Parquet table: {}", file.string(), error.what());
  }
}

// What goes wrong while writing and is not yet an Error.
template <class Body>
auto writing(const std::string& name, Body&& body) {
  try {
    return body();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail_runtime("cannot write {}: {}", name, error.what());
  }
}

// Where the writer of Arrow writes to: our atomic file.
class AtomicSink : public arrow::io::OutputStream {
 public:
  explicit AtomicSink(AtomicFile& file) : file_(file) {}
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  [[nodiscard]] bool closed() const override { return closed_; }
  [[nodiscard]] arrow::Result<std::int64_t> Tell() const override { return file_.size(); }
  arrow::Status Write(const void* data, std::int64_t size) override {
    file_.write({static_cast<const char*>(data), static_cast<std::size_t>(size)});
    return arrow::Status::OK();
  }
  using arrow::io::OutputStream::Write;

 private:
  AtomicFile& file_;
  bool closed_ = false;
};

std::unique_ptr<parquet::arrow::FileWriter> open_writer(const std::shared_ptr<arrow::Schema>& schema,
                                                        std::shared_ptr<arrow::io::OutputStream> sink) {
  const auto properties = parquet::WriterProperties::Builder()
                              .compression(arrow::Compression::ZSTD)
                              ->max_row_group_length(group_rows)
                              ->enable_page_checksum()
                              ->build();
  return value_of(parquet::arrow::FileWriter::Open(*schema, arrow::default_memory_pool(), std::move(sink), properties));
}

// Table to Arrow

template <class Builder, class Values>
std::shared_ptr<arrow::Array> array_of(const Values& values) {
  Builder builder;
  check(builder.AppendValues(values));
  return value_of(builder.Finish());
}

std::shared_ptr<arrow::DataType> vectors_type() {
  return arrow::list(arrow::field("element", arrow::float64(), /*nullable=*/false));
}

std::shared_ptr<arrow::Array> array_of_vectors(const Vectors& vectors) {
  auto values = std::make_shared<arrow::DoubleBuilder>();
  arrow::ListBuilder builder(arrow::default_memory_pool(), values, vectors_type());
  for (const auto& vector : vectors) {
    check(builder.Append());
    check(values->AppendValues(vector));
  }
  return value_of(builder.Finish());
}

std::shared_ptr<arrow::Array> array_of(const Column& column) {
  if (const auto* integers = std::get_if<Integers>(&column.values)) return array_of<arrow::Int64Builder>(*integers);
  if (const auto* numbers = std::get_if<Numbers>(&column.values)) return array_of<arrow::DoubleBuilder>(*numbers);
  if (const auto* texts = std::get_if<Texts>(&column.values)) return array_of<arrow::StringBuilder>(*texts);
  return array_of_vectors(std::get<Vectors>(column.values));
}

std::shared_ptr<arrow::Table> arrow_table(const Table& table) {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const Column& column : table.columns()) {
    arrays.push_back(array_of(column));
    fields.push_back(arrow::field(column.name, arrays.back()->type(), /*nullable=*/false));
  }
  return arrow::Table::Make(arrow::schema(fields), arrays, static_cast<std::int64_t>(table.rows()));
}

// Arrow to Table

template <class ArrayType>
void append_numbers(const arrow::Array& array, Integers* integers, Numbers& numbers) {
  const auto& values = static_cast<const ArrayType&>(array);
  for (std::int64_t row = 0; row < values.length(); ++row) {
    const bool missing = values.IsNull(row);
    numbers.push_back(missing ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(values.Value(row)));
    if (integers != nullptr) integers->push_back(missing ? 0 : static_cast<std::int64_t>(values.Value(row)));
  }
}

// False for types that are not numbers.
bool append_numbers(const arrow::Array& array, Integers* integers, Numbers& numbers) {
  switch (array.type_id()) {
    case arrow::Type::BOOL:
      append_numbers<arrow::BooleanArray>(array, integers, numbers);
      return true;
    case arrow::Type::INT8:
      append_numbers<arrow::Int8Array>(array, integers, numbers);
      return true;
    case arrow::Type::INT16:
      append_numbers<arrow::Int16Array>(array, integers, numbers);
      return true;
    case arrow::Type::INT32:
      append_numbers<arrow::Int32Array>(array, integers, numbers);
      return true;
    case arrow::Type::INT64:
      append_numbers<arrow::Int64Array>(array, integers, numbers);
      return true;
    case arrow::Type::UINT8:
      append_numbers<arrow::UInt8Array>(array, integers, numbers);
      return true;
    case arrow::Type::UINT16:
      append_numbers<arrow::UInt16Array>(array, integers, numbers);
      return true;
    case arrow::Type::UINT32:
      append_numbers<arrow::UInt32Array>(array, integers, numbers);
      return true;
    case arrow::Type::UINT64:
      append_numbers<arrow::UInt64Array>(array, nullptr, numbers);  // the largest do not fit 63 bits
      return true;
    case arrow::Type::FLOAT:
      append_numbers<arrow::FloatArray>(array, nullptr, numbers);
      return true;
    case arrow::Type::DOUBLE:
      append_numbers<arrow::DoubleArray>(array, nullptr, numbers);
      return true;
    default:
      return false;
  }
}

template <class ArrayType>
void append_texts(const arrow::Array& array, Texts& texts) {
  const auto& values = static_cast<const ArrayType&>(array);
  for (std::int64_t row = 0; row < values.length(); ++row)
    texts.push_back(values.IsNull(row) ? std::string() : values.GetString(row));
}

// Categories of pandas and polars.
void append_coded_texts(const arrow::Array& array, Texts& texts) {
  const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
  const auto& names = static_cast<const arrow::StringArray&>(*coded.dictionary());
  for (std::int64_t row = 0; row < coded.length(); ++row)
    texts.push_back(coded.IsNull(row) ? std::string() : names.GetString(coded.GetValueIndex(row)));
}

bool is_text(const arrow::DataType& type) {
  if (type.id() == arrow::Type::DICTIONARY)
    return static_cast<const arrow::DictionaryType&>(type).value_type()->id() == arrow::Type::STRING;
  return type.id() == arrow::Type::STRING || type.id() == arrow::Type::LARGE_STRING;
}

void add_texts(Table& table, const std::string& name, const arrow::ChunkedArray& column) {
  Texts texts;
  for (const auto& chunk : column.chunks()) {
    if (chunk->type_id() == arrow::Type::STRING)
      append_texts<arrow::StringArray>(*chunk, texts);
    else if (chunk->type_id() == arrow::Type::LARGE_STRING)
      append_texts<arrow::LargeStringArray>(*chunk, texts);
    else
      append_coded_texts(*chunk, texts);
  }
  table.add(name, std::move(texts));
}

template <class ArrayType>
void append_lists(const arrow::Array& array, Vectors& vectors) {
  const auto& lists = static_cast<const ArrayType&>(array);
  for (std::int64_t row = 0; row < lists.length(); ++row) {
    auto& vector = vectors.emplace_back();
    if (lists.IsNull(row)) continue;
    const auto values = lists.values()->Slice(lists.value_offset(row), lists.value_length(row));
    append_numbers(*values, nullptr, vector);
  }
}

bool is_list_of_numbers(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
    case arrow::Type::FIXED_SIZE_LIST:
      return type.field(0)->type()->id() == arrow::Type::DOUBLE || type.field(0)->type()->id() == arrow::Type::FLOAT;
    default:
      return false;
  }
}

void add_vectors(Table& table, const std::string& name, const arrow::ChunkedArray& column) {
  Vectors vectors;
  for (const auto& chunk : column.chunks()) {
    if (chunk->type_id() == arrow::Type::LIST)
      append_lists<arrow::ListArray>(*chunk, vectors);
    else if (chunk->type_id() == arrow::Type::LARGE_LIST)
      append_lists<arrow::LargeListArray>(*chunk, vectors);
    else
      append_lists<arrow::FixedSizeListArray>(*chunk, vectors);
  }
  table.add(name, std::move(vectors));
}

void add_column(Table& table, const std::string& name, const arrow::ChunkedArray& column) {
  const arrow::DataType& type = *column.type();
  if (is_list_of_numbers(type)) return add_vectors(table, name, column);
  if (is_text(type)) return add_texts(table, name, column);
  const bool whole =
      ((arrow::is_integer(type.id()) && type.id() != arrow::Type::UINT64) || type.id() == arrow::Type::BOOL) &&
      column.null_count() == 0;
  Integers integers;
  Numbers numbers;
  for (const auto& chunk : column.chunks())
    if (!append_numbers(*chunk, whole ? &integers : nullptr, numbers)) return;
  if (whole)
    table.add(name, std::move(integers));
  else
    table.add(name, std::move(numbers));
}

std::unique_ptr<parquet::arrow::FileReader> open_reader(const fs::path& file) {
  if (!fs::exists(file)) fail_input("cannot read {}: No such file or directory", file.string());
  auto source = value_of(arrow::io::ReadableFile::Open(file.string()));
  auto reader = value_of(parquet::arrow::OpenFile(std::move(source), arrow::default_memory_pool()));
  return reader;
}

std::shared_ptr<arrow::Table> read_arrow(const fs::path& file) {
  return reading(file, [&] {
    std::shared_ptr<arrow::Table> table;
    check(open_reader(file)->ReadTable(&table));
    return table;
  });
}

std::shared_ptr<arrow::Table> read_like(const fs::path& file, const std::shared_ptr<arrow::Schema>& schema) {
  auto table = read_arrow(file);
  if (schema != nullptr && !table->schema()->Equals(*schema, /*check_metadata=*/false))
    fail_input("{}: its columns are not those of the first part", file.string());
  return table;
}

// Rows that wait until they fill a group.
class Joined {
 public:
  Joined(AtomicFile& file, const std::shared_ptr<arrow::Schema>& schema)
      : writer_(open_writer(schema, std::make_shared<AtomicSink>(file))) {}

  void add(const std::shared_ptr<arrow::Table>& rows) {
    waiting_.push_back(rows);
    waiting_rows_ += rows->num_rows();
    if (waiting_rows_ >= group_rows) flush(waiting_rows_ / group_rows * group_rows);
  }

  void finish() {
    flush(waiting_rows_);
    check(writer_->Close());
  }

 private:
  // Combined: pages end where rows do not tell, should a column consist of several pieces.
  void flush(std::int64_t rows) {
    if (rows == 0) return;
    const auto all = value_of(arrow::ConcatenateTables(waiting_));
    check(writer_->WriteTable(*value_of(all->Slice(0, rows)->CombineChunks()), group_rows));
    waiting_ = {all->Slice(rows)};
    waiting_rows_ -= rows;
  }

  std::unique_ptr<parquet::arrow::FileWriter> writer_;
  Tables waiting_;
  std::int64_t waiting_rows_ = 0;
};

}  // namespace

std::string to_parquet(const Table& table) {
  return writing("a table as Parquet", [&] {
    const auto rows = arrow_table(table);
    const auto sink = value_of(arrow::io::BufferOutputStream::Create());
    const auto writer = open_writer(rows->schema(), sink);
    check(writer->WriteTable(*rows, group_rows));
    check(writer->Close());
    return value_of(sink->Finish())->ToString();
  });
}

void join_parquet(const fs::path& out, const std::vector<fs::path>& files, std::int64_t rows) {
  HEADSCOPE_CHECK(!files.empty(), "nothing to join in {}", out.string());
  AtomicFile file(out);
  std::shared_ptr<arrow::Schema> schema;
  std::unique_ptr<Joined> joined;
  for (const fs::path& name : files) {
    auto part = read_like(name, schema);
    if (part->num_rows() > rows) part = part->Slice(0, rows);
    rows -= part->num_rows();
    writing(out.string(), [&] {
      if (schema == nullptr) {
        schema = part->schema();
        joined = std::make_unique<Joined>(file, schema);
      }
      joined->add(part);
    });
  }
  writing(out.string(), [&] { joined->finish(); });
  file.commit();
}

std::int64_t parquet_rows(const fs::path& file) {
  return reading(file, [&] { return open_reader(file)->parquet_reader()->metadata()->num_rows(); });
}

Table read_parquet(const fs::path& file_or_folder) {
  const fs::path place = part_folder(file_or_folder);
  std::vector<fs::path> files = {place};
  if (fs::is_directory(place)) files = part_files(place);
  Table table(file_or_folder.string());
  if (files.empty()) return table;
  Tables parts;
  for (const fs::path& file : files) parts.push_back(read_like(file, parts.empty() ? nullptr : parts[0]->schema()));
  return reading(place, [&] {
    const auto all = value_of(arrow::ConcatenateTables(parts));
    for (int i = 0; i < all->num_columns(); ++i) add_column(table, all->field(i)->name(), *all->column(i));
    return std::move(table);
  });
}

}  // namespace headscope
