#include "formats/text_input.h"

#include <arrow/io/compressed.h>
#include <arrow/util/compression.h>
#include <parquet/column_reader.h>
#include <parquet/file_reader.h>

#include <array>

#include "core/error.h"
#include "formats/arrow_input.h"

namespace headscope {
namespace {

[[noreturn]] void fail_short(const std::string& origin) {
  fail_input("{}: the packed data is cut short; copy or write the file again", origin);
}

std::shared_ptr<arrow::io::InputStream> open_lines(const std::filesystem::path& file) {
  ArrowInput input = open_input(file, *arrow::default_memory_pool());
  const bool gzip = file.extension() == ".gz";
  if (!gzip && file.extension() != ".zst") return input.file;
  if (input.size == 0) fail_short(file.string());  // Arrow takes it for a file of no members
  const auto codec = value_of(arrow::util::Codec::Create(gzip ? arrow::Compression::GZIP : arrow::Compression::ZSTD));
  return value_of(arrow::io::CompressedInputStream::Make(codec.get(), input.file));
}

[[noreturn]] void fail(const std::string& origin, const arrow::Status& status) {
  if (status.detail()) fail_input("cannot read {}: {}", origin, status.detail()->ToString());  // of the system
  if (status.message() == "Truncated compressed stream") fail_short(origin);
  std::string_view reason = status.message();  // "zlib inflate failed: incorrect data check"
  reason.remove_prefix(std::min(reason.find(": ") + 2, reason.size()));
  fail_input("{}: the packed data is damaged ({}); copy or write the file again", origin, reason);
}

using OnText = std::function<bool(std::string_view)>;

std::string column_names(const parquet::SchemaDescriptor& schema) {
  std::string names;
  for (int i = 0; i < schema.num_columns(); ++i) names += (i > 0 ? ", " : "") + schema.Column(i)->path()->ToDotString();
  return excerpt(names);
}

int find_column(const parquet::SchemaDescriptor& schema, const std::string& column, const std::string& origin) {
  for (int i = 0; i < schema.num_columns(); ++i) {
    const parquet::ColumnDescriptor& found = *schema.Column(i);
    if (found.path()->ToDotString() != column) continue;
    const auto& logical = found.logical_type();
    const bool text = found.physical_type() == parquet::Type::BYTE_ARRAY && found.max_repetition_level() == 0 &&
                      (!logical || logical->is_none() || logical->is_string());
    if (!text)
      fail_input("{}: column '{}' is {}; expected text", origin, column, parquet::TypeToString(found.physical_type()));
    return i;
  }
  fail_input("{}: no column '{}'; name another (--text-column, or data.text_column with --set); the file has: {}",
             origin, column, column_names(schema));
}

// One column of texts, row group after row group.
class TextReader {
 public:
  TextReader(const std::string& origin, const std::string& column, std::size_t size, const OnText& on_text)
      : place_(fmt::format("{}: column '{}'", origin, column)),
        size_(size),
        room_(decoded_limit(size)),
        on_text_(on_text) {}

  bool read_group(parquet::ByteArrayReader& reader, std::int64_t rows) {
    constexpr std::int64_t batch = 256;
    std::array<parquet::ByteArray, batch> values;
    std::array<std::int16_t, batch> levels{};
    const std::int16_t present = reader.descr()->max_definition_level();
    for (std::int64_t done = 0; done < rows;) {
      std::int64_t got = 0;
      const std::int64_t read = reader.ReadBatch(std::min(batch, rows - done), present > 0 ? levels.data() : nullptr,
                                                 nullptr, values.data(), &got);
      if (read == 0) fail_input("{}: damaged: {} rows where the footer promises {}", place_, done, rows);
      for (std::int64_t i = 0; got != read && i < read; ++i)
        if (levels[static_cast<std::size_t>(i)] < present)
          fail_input("{}: row {} is null; expected a text", place_, row_ + i);
      for (std::int64_t i = 0; i < got; ++i)
        if (!deliver(values[static_cast<std::size_t>(i)], row_ + i)) return false;
      row_ += read;
      done += read;
    }
    return true;
  }

 private:
  // Counts the bytes: a dictionary of one long text can make terabytes of a small file.
  bool deliver(const parquet::ByteArray& value, std::int64_t row) {
    room_ -= value.len;
    if (room_ < 0)
      fail_input("{}: row {}: the texts so far are more than {} bytes, too many for a file of {} bytes", place_, row,
                 decoded_limit(size_), size_);
    const std::string_view text(reinterpret_cast<const char*>(value.ptr), value.len);
    return on_text_(text);
  }

  std::string place_;
  std::size_t size_;
  std::int64_t room_;
  std::int64_t row_ = 0;  // of the file
  const OnText& on_text_;
};

bool read_column(ArrowInput source, ReadLimits& limits, const std::string& origin, const std::string& column,
                 const OnText& on_text) {
  parquet::ReaderProperties properties = limits.add_file(source.size);
  properties.enable_buffered_stream();
  const auto reader = parquet::ParquetFileReader::Open(source.file, properties);
  const auto metadata = reader->metadata();
  const int index = find_column(*metadata->schema(), column, origin);
  checked_rows(*metadata, source.size, origin);
  ChunkCheck chunks(*metadata, source.size, origin, limits);
  TextReader texts(origin, column, source.size, on_text);
  for (int g = 0; g < metadata->num_row_groups(); ++g) {
    const auto group = reader->RowGroup(g);
    const std::int64_t rows = group->metadata()->num_rows();
    if (rows == 0) continue;
    chunks.place(column, index, g, /*value_bytes=*/1);  // texts are counted when they are read
    const auto values = std::static_pointer_cast<parquet::ByteArrayReader>(group->Column(index));
    if (!texts.read_group(*values, rows)) return false;
  }
  return true;
}

}  // namespace

LineReader::LineReader(const std::filesystem::path& file)
    : origin_(file.string()), input_(open_lines(file)), buffer_(1 << 18, '\0') {}

LineReader::~LineReader() = default;

void LineReader::refill() {
  const auto got = input_->Read(static_cast<std::int64_t>(buffer_.size()), buffer_.data());
  if (!got.ok()) fail(origin_, got.status());
  filled_ = static_cast<std::size_t>(*got);
  place_ = 0;
}

bool LineReader::next(std::string& line) {
  line.clear();
  ++number_;
  for (;;) {
    if (place_ == filled_) refill();
    if (filled_ == 0) return !line.empty();
    const std::string_view left = std::string_view(buffer_).substr(place_, filled_ - place_);
    const std::size_t end = left.find('\n');
    const std::string_view taken = left.substr(0, end == std::string_view::npos ? left.size() : end + 1);
    if (line.size() + taken.size() > longest_document)
      fail_input("{}: line {} has more than {} bytes; expected shorter documents", origin_, number_, longest_document);
    line += taken;
    place_ += taken.size();
    if (end != std::string_view::npos) return true;
  }
}

bool for_each_text(const std::filesystem::path& file, const std::string& column, const OnText& on_text) {
  return reading_parquet(file.string(), [&] {
    ReadLimits limits;
    return read_column(open_input(file, limits.pool), limits, file.string(), column, on_text);
  });
}

bool for_each_text(std::span<const std::byte> bytes, const std::string& origin, const std::string& column,
                   const OnText& on_text) {
  return reading_parquet(origin, [&] {
    ReadLimits limits;
    return read_column(input_of(bytes), limits, origin, column, on_text);
  });
}

}  // namespace headscope
