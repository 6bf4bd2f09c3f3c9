#include "formats/capture_writer.h"

#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <parquet/arrow/writer.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "core/atomic_file.h"
#include "core/error.h"
#include "formats/arrow_input.h"

namespace headscope {
namespace {

template <class... Args>
[[noreturn]] void refuse(const std::filesystem::path& file, fmt::format_string<Args...> format, Args&&... args) {
  fail_runtime("cannot write {}: {}", file.string(), fmt::format(format, std::forward<Args>(args)...));
}

void check_sizes(const std::filesystem::path& file, const CapturedVectors& vectors) {
  const auto expect = [&](std::string_view column, std::size_t size) {
    if (size != vectors.rows) refuse(file, "column '{}' has {} values for {} rows", column, size, vectors.rows);
  };
  expect("bucket", vectors.bucket.size());
  expect("example_id", vectors.example_id.size());
  expect("position", vectors.position.size());
  const std::size_t values = vectors.vector32.size() + vectors.vector64.size();
  const bool both = !vectors.vector32.empty() && !vectors.vector64.empty();
  if (both || vectors.dim == 0 || !std::in_range<std::int32_t>(vectors.dim) || values % vectors.dim != 0 ||
      values / vectors.dim != vectors.rows)
    refuse(file, "column 'vector' has {} values of 32 bits and {} of 64 for {} rows of {} components",
           vectors.vector32.size(), vectors.vector64.size(), vectors.rows, vectors.dim);
  if (!std::ranges::all_of(vectors.sliding_window, [](double window) { return std::isnan(window); }))
    refuse(file, "column 'sliding_window' has values; only captures without one can be written");
}

std::shared_ptr<arrow::Array> int32_array(const std::filesystem::path& file, std::string_view column,
                                          const std::vector<std::int64_t>& values) {
  arrow::Int32Builder builder;
  check(builder.Reserve(static_cast<std::int64_t>(values.size())));
  for (std::size_t row = 0; row < values.size(); ++row) {
    if (!std::in_range<std::int32_t>(values[row]))
      refuse(file, "column '{}', row {}: {} does not fit 32 bits", column, row, values[row]);
    builder.UnsafeAppend(static_cast<std::int32_t>(values[row]));
  }
  return value_of(builder.Finish());
}

template <class ArrayType, class Values>
std::shared_ptr<arrow::Array> wrapped_array(const Values& values) {
  return std::make_shared<ArrayType>(static_cast<std::int64_t>(values.size()),
                                     arrow::Buffer::Wrap(values.data(), values.size()));
}

std::string bytes_of(const std::filesystem::path& file, const CapturedVectors& vectors) {
  const auto components = vectors.vector64.empty() ? wrapped_array<arrow::FloatArray>(vectors.vector32)
                                                   : wrapped_array<arrow::DoubleArray>(vectors.vector64);
  const auto list = value_of(arrow::FixedSizeListArray::FromArrays(components, static_cast<std::int32_t>(vectors.dim)));
  const auto table = arrow::Table::Make(
      arrow::schema({arrow::field("bucket", arrow::int32()), arrow::field("example_id", arrow::int32()),
                     arrow::field("position", arrow::int32()), arrow::field("vector", list->type()),
                     arrow::field("sliding_window", arrow::null())}),
      {int32_array(file, "bucket", vectors.bucket), int32_array(file, "example_id", vectors.example_id),
       int32_array(file, "position", vectors.position), list,
       std::make_shared<arrow::NullArray>(static_cast<std::int64_t>(vectors.rows))});

  const auto sink = value_of(arrow::io::BufferOutputStream::Create());
  const auto properties =
      parquet::WriterProperties::Builder().compression(arrow::Compression::ZSTD)->enable_page_checksum()->build();
  check(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), sink, /*chunk_size=*/1 << 20, properties,
                                   parquet::ArrowWriterProperties::Builder().store_schema()->build()));
  return value_of(sink->Finish())->ToString();
}

}  // namespace

void write_captured_vectors(const std::filesystem::path& file, const CapturedVectors& vectors) {
  check_sizes(file, vectors);
  const std::string bytes = writing_parquet(file.string(), [&] { return bytes_of(file, vectors); });
  if (file.has_parent_path()) make_folder(file.parent_path());
  write_file(file, bytes);
}

}  // namespace headscope
