#include "formats/arrow_table.h"

#include <arrow/visit_array_inline.h>

#include <limits>
#include <stdexcept>

#include "formats/arrow_input.h"

namespace headscope {
namespace {

template <class Builder, class Values>
std::shared_ptr<arrow::Array> array_of(const Values& values) {
  Builder builder;
  check(builder.AppendValues(values));
  return value_of(builder.Finish());
}

template <class Builder, class Lists>
std::shared_ptr<arrow::Array> array_of_lists(const Lists& lists) {
  auto values = std::make_shared<Builder>();
  arrow::ListBuilder builder(arrow::default_memory_pool(), values,
                             arrow::list(arrow::field("element", values->type(), /*nullable=*/false)));
  for (const auto& list : lists) {
    check(builder.Append());
    check(values->AppendValues(list));
  }
  return value_of(builder.Finish());
}

std::shared_ptr<arrow::Array> array_with_nulls(const OptionalIntegers& values) {
  arrow::Int64Builder builder;
  for (const std::optional<std::int64_t>& value : values) check(value ? builder.Append(*value) : builder.AppendNull());
  return value_of(builder.Finish());
}

std::shared_ptr<arrow::Array> array_of(const Column& column) {
  if (const auto* integers = std::get_if<Integers>(&column.values)) return array_of<arrow::Int64Builder>(*integers);
  if (const auto* numbers = std::get_if<Numbers>(&column.values)) return array_of<arrow::DoubleBuilder>(*numbers);
  if (const auto* texts = std::get_if<Texts>(&column.values)) return array_of<arrow::StringBuilder>(*texts);
  if (const auto* vectors = std::get_if<Vectors>(&column.values)) return array_of_lists<arrow::DoubleBuilder>(*vectors);
  if (const auto* vectors = std::get_if<FloatVectors>(&column.values))
    return array_of_lists<arrow::FloatBuilder>(*vectors);
  if (const auto* lists = std::get_if<TextLists>(&column.values)) return array_of_lists<arrow::StringBuilder>(*lists);
  return array_with_nulls(std::get<OptionalIntegers>(column.values));
}

// Counts the bytes that columns take and refuses those beyond the limit.
class Room {
 public:
  explicit Room(std::int64_t bytes) : left_(bytes) {}
  void take(std::int64_t count, std::size_t bytes_each) {
    if (count > left_ / static_cast<std::int64_t>(bytes_each))
      throw std::runtime_error("its values take more memory than a file of this size can mean");
    left_ -= count * static_cast<std::int64_t>(bytes_each);
  }

 private:
  std::int64_t left_;
};

// Appends the numbers of an array of any of the types of is_number().
template <class Value>
struct NumberAppender {
  std::vector<Value>& out;

  template <class ArrayType>
  arrow::Status Visit(const ArrayType& values) {
    constexpr Value null_value = std::numeric_limits<Value>::quiet_NaN();  // 0 for integers, which are never null
    if constexpr (requires { static_cast<Value>(values.Value(0)); })
      for (std::int64_t row = 0; row < values.length(); ++row)
        out.push_back(values.IsNull(row) ? null_value : static_cast<Value>(values.Value(row)));
    return arrow::Status::OK();
  }
};

template <class Value>
void append_numbers(const arrow::Array& array, std::vector<Value>& out) {
  NumberAppender<Value> appender{out};
  check(arrow::VisitArrayInline(array, &appender));
}

// uint64 is not among them: its largest values do not fit std::int64_t.
bool is_whole(const arrow::DataType& type) {
  return (arrow::is_integer(type.id()) && type.id() != arrow::Type::UINT64) || type.id() == arrow::Type::BOOL;
}

bool is_number(const arrow::DataType& type) {
  return is_whole(type) || type.id() == arrow::Type::UINT64 || type.id() == arrow::Type::FLOAT ||
         type.id() == arrow::Type::DOUBLE;
}

template <class Value>
void add_numbers(Table& table, const std::string& name, const arrow::ChunkedArray& column, Room& room) {
  room.take(column.length(), sizeof(Value));
  std::vector<Value> values;
  values.reserve(static_cast<std::size_t>(column.length()));
  for (const auto& chunk : column.chunks()) append_numbers(*chunk, values);
  table.add(name, std::move(values));
}

// Categories of pandas and polars are texts too.
bool is_text(const arrow::DataType& type) {
  if (type.id() == arrow::Type::DICTIONARY)
    return static_cast<const arrow::DictionaryType&>(type).value_type()->id() == arrow::Type::STRING;
  return type.id() == arrow::Type::STRING || type.id() == arrow::Type::LARGE_STRING;
}

// Calls `visit` with each text; null is empty.
template <class Visit>
void for_each_text(const arrow::Array& array, Visit visit) {
  const auto each = [&](auto view) {
    for (std::int64_t row = 0; row < array.length(); ++row) visit(array.IsNull(row) ? std::string_view() : view(row));
  };
  if (array.type_id() == arrow::Type::STRING) {
    each([&](std::int64_t row) { return static_cast<const arrow::StringArray&>(array).GetView(row); });
  } else if (array.type_id() == arrow::Type::LARGE_STRING) {
    each([&](std::int64_t row) { return static_cast<const arrow::LargeStringArray&>(array).GetView(row); });
  } else {
    const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
    const auto& names = static_cast<const arrow::StringArray&>(*coded.dictionary());
    each([&](std::int64_t row) {
      const std::int64_t index = coded.GetValueIndex(row);
      return names.IsNull(index) ? std::string_view() : names.GetView(index);
    });
  }
}

void add_texts(Table& table, const std::string& name, const arrow::ChunkedArray& column, Room& room) {
  room.take(column.length(), sizeof(std::string));
  for (const auto& chunk : column.chunks())
    for_each_text(*chunk, [&](std::string_view text) { room.take(static_cast<std::int64_t>(text.size()), 1); });
  Texts texts;
  texts.reserve(static_cast<std::size_t>(column.length()));
  for (const auto& chunk : column.chunks())
    for_each_text(*chunk, [&](std::string_view text) { texts.emplace_back(text); });
  table.add(name, std::move(texts));
}

bool is_list(const arrow::DataType& type) {
  return type.id() == arrow::Type::LIST || type.id() == arrow::Type::LARGE_LIST ||
         type.id() == arrow::Type::FIXED_SIZE_LIST;
}

bool is_list_of_numbers(const arrow::DataType& type) {
  if (!is_list(type)) return false;
  const arrow::Type::type element = type.field(0)->type()->id();
  return element == arrow::Type::DOUBLE || element == arrow::Type::FLOAT;
}

bool is_list_of_texts(const arrow::DataType& type) {
  return is_list(type) && is_text(*type.field(0)->type());
}

void append_elements(const arrow::Array& elements, Numbers& vector, Room&) {
  append_numbers(elements, vector);
}

void append_elements(const arrow::Array& elements, Texts& texts, Room& room) {
  for_each_text(elements, [&](std::string_view text) {
    room.take(static_cast<std::int64_t>(text.size()), 1);
    texts.emplace_back(text);
  });
}

template <class ArrayType, class List>
void append_lists(const arrow::Array& array, std::vector<List>& out, Room& room) {
  const auto& lists = static_cast<const ArrayType&>(array);
  for (std::int64_t row = 0; row < lists.length(); ++row) {
    List& list = out.emplace_back();
    if (lists.IsNull(row)) continue;
    room.take(lists.value_length(row), sizeof(typename List::value_type));
    list.reserve(static_cast<std::size_t>(lists.value_length(row)));
    append_elements(*lists.values()->Slice(lists.value_offset(row), lists.value_length(row)), list, room);
  }
}

template <class List>
void add_lists(Table& table, const std::string& name, const arrow::ChunkedArray& column, Room& room) {
  room.take(column.length(), sizeof(List));
  std::vector<List> lists;
  lists.reserve(static_cast<std::size_t>(column.length()));
  for (const auto& chunk : column.chunks()) {
    if (chunk->type_id() == arrow::Type::LIST)
      append_lists<arrow::ListArray>(*chunk, lists, room);
    else if (chunk->type_id() == arrow::Type::LARGE_LIST)
      append_lists<arrow::LargeListArray>(*chunk, lists, room);
    else
      append_lists<arrow::FixedSizeListArray>(*chunk, lists, room);
  }
  table.add(name, std::move(lists));
}

void add_column(Table& table, const std::string& name, const arrow::ChunkedArray& column, Room& room) {
  const arrow::DataType& type = *column.type();
  if (is_list_of_numbers(type))
    add_lists<Numbers>(table, name, column, room);
  else if (is_list_of_texts(type))
    add_lists<Texts>(table, name, column, room);
  else if (is_text(type))
    add_texts(table, name, column, room);
  else if (is_whole(type) && column.null_count() == 0)
    add_numbers<std::int64_t>(table, name, column, room);
  else if (is_number(type))
    add_numbers<double>(table, name, column, room);
}

}  // namespace

std::shared_ptr<arrow::Table> arrow_table(const Table& table) {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const Column& column : table.columns()) {
    arrays.push_back(array_of(column));
    const bool nullable = std::holds_alternative<OptionalIntegers>(column.values);
    fields.push_back(arrow::field(column.name, arrays.back()->type(), nullable));
  }
  return arrow::Table::Make(arrow::schema(fields), arrays, static_cast<std::int64_t>(table.rows()));
}

std::size_t value_bytes(const arrow::DataType& type) {
  if (is_text(type) || is_list_of_texts(type)) return sizeof(std::string);
  return is_number(type) || is_list_of_numbers(type) ? sizeof(double) : 0;
}

void add_columns(Table& table, const arrow::Table& columns, std::int64_t bytes) {
  Room room(bytes);
  for (int i = 0; i < columns.num_columns(); ++i) add_column(table, columns.field(i)->name(), *columns.column(i), room);
}

}  // namespace headscope
