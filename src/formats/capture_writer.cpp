#include "formats/capture_writer.h"

#include <arrow/api.h>
#include <parquet/arrow/writer.h>

#include <algorithm>

#include "core/error.h"
#include "formats/arrow_input.h"
#include "formats/atomic_sink.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t group_bytes = std::size_t{16} << 20;  // of vectors

fs::path in_a_folder(const fs::path& file) {
  if (file.has_parent_path()) make_folder(file.parent_path());
  return file;
}

std::shared_ptr<arrow::Schema> schema_of(const CaptureColumns& columns) {
  arrow::FieldVector fields = {
      arrow::field("bucket", arrow::int32()), arrow::field("example_id", arrow::int32()),
      arrow::field("position", arrow::int32()),
      arrow::field("vector", arrow::fixed_size_list(arrow::float32(), static_cast<std::int32_t>(columns.dim))),
      arrow::field("sliding_window", columns.sliding_window ? arrow::int64() : arrow::null())};
  if (columns.token_str) fields.push_back(arrow::field("token_str", arrow::utf8()));
  return arrow::schema(fields);
}

template <class ArrayType, class Value>
std::shared_ptr<arrow::Array> array_of(const std::vector<Value>& values) {
  return std::make_shared<ArrayType>(static_cast<std::int64_t>(values.size()),
                                     arrow::Buffer::Wrap(values.data(), values.size()));
}

}  // namespace

fs::path captured_file(const fs::path& data, std::int64_t layer, std::int64_t head, char kind) {
  return data / fmt::format("l{:02}h{:02}{}", layer, head, kind) / "data.parquet";
}

struct CaptureWriter::State {
  CaptureColumns columns;
  std::size_t group_rows;
  std::shared_ptr<arrow::Schema> schema;
  std::unique_ptr<parquet::arrow::FileWriter> writer;
  // The group that is being filled.
  std::vector<std::int32_t> bucket, example_id, position;
  std::vector<float> vectors;
  std::vector<std::string> token_str;
};

CaptureWriter::CaptureWriter(const fs::path& file, const CaptureColumns& columns)
    : path_(file), file_(in_a_folder(file)), state_(std::make_unique<State>()) {
  HEADSCOPE_CHECK(columns.dim > 0, "{}: vectors without components", file.string());
  State& s = *state_;
  s.columns = columns;
  s.group_rows = std::max<std::size_t>(1, group_bytes / (columns.dim * sizeof(float)));
  s.schema = schema_of(columns);
  writing_parquet(path_.string(), [&] {
    const auto properties = parquet::WriterProperties::Builder()
                                .compression(arrow::Compression::ZSTD)
                                ->enable_page_checksum()
                                ->disable_dictionary("vector.list.element")  // hardly any number comes twice
                                ->build();
    s.writer = value_of(parquet::arrow::FileWriter::Open(
        *s.schema, arrow::default_memory_pool(), std::make_shared<AtomicSink>(file_), properties,
        parquet::ArrowWriterProperties::Builder().store_schema()->build()));
  });
}

CaptureWriter::~CaptureWriter() = default;

void CaptureWriter::append(const CaptureRows& rows) {
  State& s = *state_;
  const std::size_t count = rows.bucket.size();
  HEADSCOPE_CHECK(rows.example_id.size() == count && rows.position.size() == count &&
                      rows.vectors.size() == count * s.columns.dim &&
                      rows.token_str.size() == (s.columns.token_str ? count : 0),
                  "{}: columns of different lengths for {} rows", path_.string(), count);
  const auto add = [](auto& to, auto from, std::size_t first, std::size_t taken) {
    to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(first),
              from.begin() + static_cast<std::ptrdiff_t>(first + taken));
  };
  for (std::size_t first = 0; first < count;) {
    const std::size_t taken = std::min(count - first, s.group_rows - s.bucket.size());
    add(s.bucket, rows.bucket, first, taken);
    add(s.example_id, rows.example_id, first, taken);
    add(s.position, rows.position, first, taken);
    add(s.vectors, rows.vectors, first * s.columns.dim, taken * s.columns.dim);
    if (s.columns.token_str) add(s.token_str, rows.token_str, first, taken);
    first += taken;
    if (s.bucket.size() == s.group_rows) flush();
  }
}

void CaptureWriter::flush() {
  State& s = *state_;
  if (s.bucket.empty()) return;
  writing_parquet(path_.string(), [&] {
    const auto rows = static_cast<std::int64_t>(s.bucket.size());
    const auto vectors = value_of(arrow::FixedSizeListArray::FromArrays(array_of<arrow::FloatArray>(s.vectors),
                                                                        static_cast<std::int32_t>(s.columns.dim)));
    arrow::ArrayVector arrays = {array_of<arrow::Int32Array>(s.bucket), array_of<arrow::Int32Array>(s.example_id),
                                 array_of<arrow::Int32Array>(s.position), vectors};
    if (s.columns.sliding_window)
      arrays.push_back(value_of(arrow::MakeArrayFromScalar(arrow::Int64Scalar(*s.columns.sliding_window), rows)));
    else
      arrays.push_back(std::make_shared<arrow::NullArray>(rows));
    if (s.columns.token_str) {
      arrow::StringBuilder texts;
      check(texts.AppendValues(s.token_str));
      arrays.push_back(value_of(texts.Finish()));
    }
    check(s.writer->WriteTable(*arrow::Table::Make(s.schema, arrays), rows));
  });
  s.bucket.clear();
  s.example_id.clear();
  s.position.clear();
  s.vectors.clear();
  s.token_str.clear();
}

void CaptureWriter::commit() {
  flush();
  writing_parquet(path_.string(), [&] { check(state_->writer->Close()); });
  file_.commit();
}

}  // namespace headscope
