#include "formats/capture_writer.h"

#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <parquet/arrow/writer.h>

#include "core/atomic_file.h"
#include "core/error.h"

namespace headscope {
namespace {

template <class T>
T value_of(arrow::Result<T> result) {
  if (!result.ok()) fail_runtime("Arrow: {}", result.status().ToString());
  return std::move(result).ValueUnsafe();
}

void check(const arrow::Status& status) {
  if (!status.ok()) fail_runtime("Arrow: {}", status.ToString());
}

std::shared_ptr<arrow::Array> int32_array(const std::vector<std::int64_t>& values) {
  arrow::Int32Builder builder;
  check(builder.Reserve(static_cast<std::int64_t>(values.size())));
  for (const std::int64_t value : values) builder.UnsafeAppend(static_cast<std::int32_t>(value));
  return value_of(builder.Finish());
}

}  // namespace

void write_captured_vectors(const std::filesystem::path& file, const CapturedVectors& vectors) {
  const auto rows = static_cast<std::int64_t>(vectors.rows);
  const auto values =
      std::make_shared<arrow::FloatArray>(rows * static_cast<std::int64_t>(vectors.dim),
                                          arrow::Buffer::Wrap(vectors.vector32.data(), vectors.vector32.size()));
  const auto list = value_of(arrow::FixedSizeListArray::FromArrays(values, static_cast<std::int32_t>(vectors.dim)));
  const auto table = arrow::Table::Make(
      arrow::schema({arrow::field("bucket", arrow::int32()), arrow::field("example_id", arrow::int32()),
                     arrow::field("position", arrow::int32()), arrow::field("vector", list->type()),
                     arrow::field("sliding_window", arrow::null())}),
      {int32_array(vectors.bucket), int32_array(vectors.example_id), int32_array(vectors.position), list,
       std::make_shared<arrow::NullArray>(rows)});

  const auto sink = value_of(arrow::io::BufferOutputStream::Create());
  const auto properties =
      parquet::WriterProperties::Builder().compression(arrow::Compression::ZSTD)->enable_page_checksum()->build();
  check(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), sink, /*chunk_size=*/1 << 20, properties,
                                   parquet::ArrowWriterProperties::Builder().store_schema()->build()));
  const auto bytes = value_of(sink->Finish());
  std::filesystem::create_directories(file.parent_path());
  write_file(file, {reinterpret_cast<const char*>(bytes->data()), static_cast<std::size_t>(bytes->size())});
}

}  // namespace headscope
