#include "formats/captured_vectors.h"

#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <parquet/arrow/writer.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <new>
#include <numeric>
#include <utility>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/regular_file.h"
#include "formats/arrow_input.h"
#include "formats/captured_file.h"
#include "formats/content_hash.h"

namespace headscope {
namespace {

using FileBytes = std::vector<std::byte, UninitialisedAllocator<std::byte>>;

// A bucket is the index of a region of the context: real ones are below 32 (logarithmic) or some thousands (linear).
constexpr std::int64_t largest_bucket = 1'000'000;

FileBytes read_bytes(const std::filesystem::path& file) {
  const RegularFile opened = open_regular_file(file);
  FileBytes bytes(opened.size);
  if (opened.read(bytes) < bytes.size())
    fail_input("{}: became shorter while it was read; is it still being written?", file.string());
  return bytes;
}

// Returns what `body` returns. An exception of a library becomes an Error that names the file and the column.
template <class Body>
auto in_column(const CapturedColumn& column, Body&& body) {
  return reading_parquet(column.place, body, "{}: damaged: {}; copy or write the file again");
}

// The exponent of an infinity or a NaN is all ones: adding one to it carries into the sign bit.
std::uint32_t nonfinite(float value) {
  return ((std::bit_cast<std::uint32_t>(value) & 0x7f800000U) + 0x00800000U) & 0x80000000U;
}
std::uint64_t nonfinite(double value) {
  return ((std::bit_cast<std::uint64_t>(value) & 0x7ff0000000000000U) + 0x0010000000000000U) & 0x8000000000000000U;
}

template <class Value>
bool all_finite(const Value* values, std::size_t count) {
  decltype(nonfinite(Value{})) found = 0;  // an OR without branches: the compiler vectorises it
  for (std::size_t i = 0; i < count; ++i) found |= nonfinite(values[i]);
  return found == 0;
}

// What was found while the vector column was read.
struct VectorShape {
  std::size_t components = 0;
  bool finite = true;
};

// Follows the repetition levels (0 starts a row, 1 continues it) of the vectors through the file and checks that all
// rows have as many components as the first.
class EqualRows {
 public:
  explicit EqualRows(const CapturedColumn& column) : column_(column) {}

  void follow(std::span<const std::int16_t> repetition) {
    if (follow_equal(repetition)) return;
    for (const std::int16_t level : repetition) {
      if (level == 0) {
        end_row();
        ++rows_;
        length_ = 0;
      }
      ++length_;
    }
  }

  // Rows may continue over pages, never over chunks.
  void end_row() {
    if (rows_ == 1) components_ = length_;
    if (length_ != components_)
      column_.fault("row {} has {} components, expected {} as in row 0", row(), length_, components_);
  }

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t row() const { return rows_ - 1; }           // the last one
  [[nodiscard]] std::size_t length() const { return length_; }          // of the last one, so far
  [[nodiscard]] std::size_t components() const { return components_; }  // of every row; 0 in the first

 private:
  // The fast way: a row starts where it has to and nowhere else. False, and nothing changed, when that is not so.
  bool follow_equal(std::span<const std::int16_t> repetition) {
    if (components_ == 0 || length_ > components_) return false;
    int starts = 0, found = 0;  // as int: the compiler vectorises the count
    for (std::size_t i = components_ - length_; i < repetition.size(); i += components_, ++starts)
      if (repetition[i] != 0) return false;
    for (const std::int16_t level : repetition) found += level == 0 ? 1 : 0;
    if (found != starts) return false;
    rows_ += static_cast<std::size_t>(starts);
    length_ = (length_ + repetition.size() - 1) % components_ + 1;
    return true;
  }

  const CapturedColumn& column_;
  std::size_t rows_ = 0;
  std::size_t length_ = 0;
  std::size_t components_ = 0;
};

// Rows have equal lengths and no nulls.
void follow_rows(const CapturedColumn& column, const LevelBatch& levels, EqualRows& rows) {
  const auto repetition = std::span(levels.repetition).first(levels.count);
  if (levels.values == levels.count) return rows.follow(repetition);
  const auto gap = std::ranges::find_if(
      levels.definition, [&](std::int16_t level) { return level < column.leaf->max_definition_level(); });
  rows.follow(repetition.first(static_cast<std::size_t>(gap - levels.definition.begin()) + 1));
  if (*gap < column.list_definition - 1) column.fault("row {} is null, expected a vector", rows.row());
  if (*gap == column.list_definition - 1) column.fault("row {} has no components", rows.row());
  column.fault("row {}, component {} is null, expected a number", rows.row(), rows.length() - 1);
}

template <class Type, class Values>
VectorShape read_vectors_as(const CapturedColumn& column, const parquet::ReaderProperties& properties, Values& out) {
  std::int64_t total = 0;
  for (const ColumnChunk& chunk : column.chunks) total += chunk.levels;
  out.resize(static_cast<std::size_t>(total));
  auto* next = out.data();
  VectorShape shape;
  EqualRows rows(column);
  for (const ColumnChunk& chunk : column.chunks) {
    const std::size_t before = rows.rows();
    for_each_batch<Type>(column, chunk, properties, next, [&](const LevelBatch& levels) {
      if (rows.rows() == before && levels.repetition[0] != 0)
        column.fault("damaged: the first page starts in the middle of row {}", before);
      follow_rows(column, levels, rows);
      shape.finite &= all_finite(next, levels.values);
      return next += levels.values;
    });
    rows.end_row();
    if (rows.rows() - before != static_cast<std::size_t>(chunk.rows))
      column.fault("damaged: {} rows where the footer promises {}", rows.rows() - before, chunk.rows);
  }
  shape.components = rows.components();
  return shape;
}

VectorShape read_vectors(const CapturedColumn& column, const parquet::ReaderProperties& properties,
                         CapturedVectors& captured) {
  switch (column.type) {
    case CapturedType::float16:
      return read_vectors_as<parquet::FLBAType>(column, properties, captured.vector32);
    case CapturedType::float32:
      return read_vectors_as<parquet::FloatType>(column, properties, captured.vector32);
    default:
      return read_vectors_as<parquet::DoubleType>(column, properties, captured.vector64);
  }
}

template <class Values>
void refuse_nonfinite(const Values& values, std::size_t dim, const std::string& origin) {
  const auto bad = std::find_if(values.begin(), values.end(), [](auto value) { return nonfinite(value) != 0; });
  const auto at = static_cast<std::size_t>(bad - values.begin());
  fail_input("{}: column 'vector': row {}, component {} is {}, expected a finite number", origin, at / dim, at % dim,
             std::isnan(*bad) ? "NaN" : "infinite");
}

// Moves the kept rows of a [rows, width] array to its front.
template <class Values>
void keep_rows(Values& values, const std::vector<std::size_t>& kept, std::size_t width) {
  if (values.empty()) return;
  auto out = values.begin();
  for (const std::size_t row : kept) {
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(row * width);
    out = from == out ? out + static_cast<std::ptrdiff_t>(width) : std::copy_n(from, width, out);
  }
  values.resize(kept.size() * width);
}

void drop_nonfinite(CapturedVectors& captured, const std::string& origin) {
  std::vector<std::size_t> kept;
  const std::size_t dim = captured.dim;
  for (std::size_t row = 0; row < captured.rows; ++row) {
    const bool finite = captured.vector64.empty() ? all_finite(&captured.vector32[row * dim], dim)
                                                  : all_finite(&captured.vector64[row * dim], dim);
    if (finite) kept.push_back(row);
  }
  if (kept.empty()) fail_input("{}: column 'vector': every row has a NaN or an infinity, no rows are left", origin);
  keep_rows(captured.vector32, kept, dim);
  keep_rows(captured.vector64, kept, dim);
  keep_rows(captured.bucket, kept, 1);
  keep_rows(captured.position, kept, 1);
  keep_rows(captured.example_id, kept, 1);
  keep_rows(captured.sliding_window, kept, 1);
  captured.dropped_nonfinite = captured.rows - kept.size();
  captured.rows = kept.size();
}

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

CapturedVectors parse_captured_vectors(std::span<const std::byte> bytes, const std::string& origin,
                                       const CaptureReadOptions& options) {
  ReadLimits limits;
  const auto properties = limits.add_file(bytes.size());
  const auto file = read_captured_footer({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, origin,
                                         properties, limits);

  const auto integers = [&](const CapturedColumn& column, const IntegerRange& range) {
    return in_column(column, [&] { return read_integers(column, range, properties); });
  };
  CapturedVectors captured;
  captured.origin = origin;
  captured.rows = static_cast<std::size_t>(file.rows);
  captured.bucket = integers(file.bucket, {0, largest_bucket, "the index of a region of the context, 0 to 1000000"});
  captured.position = integers(file.position, {.lowest = 0, .expected = "a token position, at least 0"});
  if (file.example_id) {
    captured.example_id = integers(*file.example_id, {});
  } else {
    captured.example_id.resize(captured.rows);
    std::iota(captured.example_id.begin(), captured.example_id.end(), std::int64_t{0});
  }
  if (file.sliding_window) {
    captured.sliding_window =
        in_column(*file.sliding_window, [&] { return read_windows(*file.sliding_window, properties); });
  }
  const auto shape = in_column(file.vector, [&] { return read_vectors(file.vector, properties, captured); });
  captured.dim = shape.components;
  if (!shape.finite && options.drop_nonfinite) {
    drop_nonfinite(captured, origin);
  } else if (!shape.finite) {
    captured.vector64.empty() ? refuse_nonfinite(captured.vector32, captured.dim, origin)
                              : refuse_nonfinite(captured.vector64, captured.dim, origin);
  }
  captured.content_hash = content_hash(bytes);
  return captured;
}

CapturedVectors read_captured_vectors(const std::filesystem::path& file, const CaptureReadOptions& options) {
  const std::string origin = file.string();
  try {
    return parse_captured_vectors(read_bytes(file), origin, options);
  } catch (const std::bad_alloc&) {
    fail_runtime("{}: not enough memory to read it", origin);
  }
}

void write_captured_vectors(const std::filesystem::path& file, const CapturedVectors& vectors) {
  check_sizes(file, vectors);
  const std::string bytes = writing_parquet(file.string(), [&] { return bytes_of(file, vectors); });
  if (file.has_parent_path()) make_folder(file.parent_path());
  write_file(file, bytes);
}

}  // namespace headscope
