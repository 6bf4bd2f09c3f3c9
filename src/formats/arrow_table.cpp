#include "formats/arrow_table.h"

#include <limits>

namespace headscope {
namespace {

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

}  // namespace

std::shared_ptr<arrow::Table> arrow_table(const Table& table) {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const Column& column : table.columns()) {
    arrays.push_back(array_of(column));
    fields.push_back(arrow::field(column.name, arrays.back()->type(), /*nullable=*/false));
  }
  return arrow::Table::Make(arrow::schema(fields), arrays, static_cast<std::int64_t>(table.rows()));
}

void add_columns(Table& table, const arrow::Table& columns) {
  for (int i = 0; i < columns.num_columns(); ++i) add_column(table, columns.field(i)->name(), *columns.column(i));
}

}  // namespace headscope
