#include "formats/captured_files.h"

#include <arrow/io/memory.h>
#include <arrow/json/from_string.h>
#include <parquet/arrow/writer.h>

#include <cmath>
#include <fstream>
#include <span>

namespace headscope::test {

std::filesystem::path CaptureFolder::file(std::string_view bytes) const {
  const auto name = path() / "data.parquet";
  std::ofstream(name, std::ios::binary) << bytes;
  return name;
}

namespace {

void check(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

template <class T>
T check(arrow::Result<T> result) {
  check(result.status());
  return std::move(result).ValueOrDie();
}

std::string json_list(std::int64_t count, const std::function<std::string(std::int64_t)>& item) {
  std::string json = "[";
  for (std::int64_t i = 0; i < count; ++i) {
    if (i > 0) json += ',';
    json += item(i);
  }
  json += ']';
  return json;
}

}  // namespace

std::shared_ptr<arrow::Array> from_json(const std::shared_ptr<arrow::DataType>& type, const std::string& json) {
  return check(arrow::json::ArrayFromJSONString(type, json));
}

Capture::Capture(std::int64_t rows, std::int64_t dim, const std::shared_ptr<arrow::DataType>& vector_type) {
  const auto number = [](std::int64_t i) { return std::to_string(i); };
  set("token_str", arrow::utf8(), json_list(rows, [&](auto i) { return fmt::format("\"t{}\"", i); }));
  set("bucket", arrow::int64(), json_list(rows, [&](auto i) { return number(i / 2); }));
  set("example_id", arrow::int64(), json_list(rows, [&](auto i) { return number(i % 3 - 1); }));
  set("position", arrow::int64(), json_list(rows, [&](auto i) { return number(5 * i); }));
  set("vector", vector_type, json_list(rows, [&](auto row) {
        return json_list(dim, [&](auto c) { return fmt::format("{:.3f}", expected_component(row, c)); });
      }));
  set("sliding_window", arrow::null(), json_list(rows, [](auto) { return "null"; }));
}

Capture& Capture::set(const std::string& name, const std::shared_ptr<arrow::Array>& values) {
  for (auto& [known, array] : columns_) {
    if (known == name) {
      array = values;
      return *this;
    }
  }
  columns_.emplace_back(name, values);
  return *this;
}

Capture& Capture::set(const std::string& name, const std::shared_ptr<arrow::DataType>& type, const std::string& json) {
  return set(name, from_json(type, json));
}

Capture& Capture::drop(const std::string& name) {
  std::erase_if(columns_, [&](const auto& column) { return column.first == name; });
  return *this;
}

Capture& Capture::nullable(bool allowed) {
  nullable_ = allowed;
  return *this;
}

std::string Capture::write(const Change& change, std::int64_t rows_per_group) const {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const auto& [name, array] : columns_) {
    fields.push_back(arrow::field(name, array->type(), nullable_ || array->type_id() == arrow::Type::NA));
    arrays.push_back(array);
  }
  const auto table = arrow::Table::Make(arrow::schema(fields), arrays);
  parquet::WriterProperties::Builder properties;
  properties.compression(parquet::Compression::ZSTD);
  if (change) change(properties);
  const auto sink = check(arrow::io::BufferOutputStream::Create());
  check(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), sink, rows_per_group, properties.build(),
                                   parquet::ArrowWriterProperties::Builder().store_schema()->build()));
  return check(sink->Finish())->ToString();
}

CapturedVectors parse(std::string_view bytes, const CaptureReadOptions& options) {
  return parse_captured_vectors(std::as_bytes(std::span(bytes)), "some/data.parquet", options);
}

std::string refusal(std::string_view bytes, const CaptureReadOptions& options) {
  try {
    const auto captured = parse(bytes, options);
    ADD_FAILURE() << "accepted: " << captured.rows << " rows of " << captured.dim << " components";
  } catch (const Error& error) {
    const std::string line = error.what();
    EXPECT_EQ(error.fault(), Fault::input) << line;
    EXPECT_TRUE(line.starts_with("some/data.parquet: ")) << line;
    EXPECT_EQ(line.find_first_of("\n\r\t"), std::string::npos) << line;
    EXPECT_LT(line.size(), 600U) << line;
    return line;
  }
  return {};
}

void expect_capture(const CapturedVectors& captured, std::size_t rows, std::size_t dim) {
  ASSERT_EQ(captured.rows, rows);
  ASSERT_EQ(captured.dim, dim);
  ASSERT_EQ(captured.bucket.size(), rows);
  ASSERT_EQ(captured.position.size(), rows);
  ASSERT_EQ(captured.example_id.size(), rows);
  ASSERT_EQ(captured.vector32.size() + captured.vector64.size(), rows * dim);
  ASSERT_TRUE(captured.vector32.empty() || captured.vector64.empty());
  EXPECT_EQ(captured.dropped_nonfinite, 0U);
  EXPECT_EQ(captured.content_hash.size(), 32U);
  for (std::size_t i = 0; i < rows; ++i) {
    const auto row = static_cast<std::int64_t>(i);
    EXPECT_EQ(captured.bucket[i], row / 2);
    EXPECT_EQ(captured.position[i], 5 * row);
    EXPECT_EQ(captured.example_id[i], row % 3 - 1);
    for (std::size_t c = 0; c < dim; ++c) {
      const double value = captured.vector64.empty() ? static_cast<double>(captured.vector32[i * dim + c])
                                                     : captured.vector64[i * dim + c];
      ASSERT_EQ(value, expected_component(row, static_cast<std::int64_t>(c))) << "row " << i << ", component " << c;
    }
  }
}

}  // namespace headscope::test
