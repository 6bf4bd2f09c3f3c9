#include "formats/arrow_input.h"

#include <arrow/buffer.h>
#include <arrow/io/file.h>
#include <arrow/io/memory.h>
#include <parquet/schema.h>

#include <algorithm>

#include "core/regular_file.h"

namespace headscope {

std::string reason_of(const std::exception& error) {
  std::string reason = on_one_line(excerpt(error.what()));
  while (reason.ends_with('.') || reason.ends_with(' ')) reason.pop_back();
  return reason;
}

ArrowInput open_input(const std::filesystem::path& file, arrow::MemoryPool& pool) {
  RegularFile opened = open_regular_file(file);
  auto readable = arrow::io::ReadableFile::Open(opened.descriptor.release(), &pool);  // which closes it
  if (!readable.ok()) fail_input("cannot read {}: {}", file.string(), readable.status().message());
  return {std::move(readable).ValueUnsafe(), opened.size};
}

ArrowInput input_of(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return {std::make_shared<arrow::io::BufferReader>(
              std::make_shared<arrow::Buffer>(data, static_cast<std::int64_t>(bytes.size()))),
          bytes.size()};
}

arrow::Status CappedPool::room_for(std::int64_t more) const {
  if (more <= limit_ - bytes_allocated()) return arrow::Status::OK();
  return arrow::Status::OutOfMemory("a page claims ", more, " bytes, more than a file of this size can mean");
}

arrow::Status CappedPool::Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) {
  ARROW_RETURN_NOT_OK(room_for(size));
  return ProxyMemoryPool::Allocate(size, alignment, out);
}

arrow::Status CappedPool::Reallocate(std::int64_t old_size, std::int64_t new_size, std::int64_t alignment,
                                     std::uint8_t** ptr) {
  ARROW_RETURN_NOT_OK(room_for(new_size - old_size));
  return ProxyMemoryPool::Reallocate(old_size, new_size, alignment, ptr);
}

parquet::ReaderProperties ReadLimits::add_file(std::size_t size) {
  pool.raise_limit(decoded_per_byte * static_cast<std::int64_t>(size));
  room += decoded_per_byte * static_cast<std::int64_t>(size);
  parquet::ReaderProperties properties(&pool);
  properties.set_page_checksum_verification(true);  // compression alone lets a flipped bit through as another number
  // Texts and lists that a header claims are refused before memory is taken for them. The second limit also bounds the
  // nesting of the schema, which libparquet follows by recursion.
  properties.set_thrift_string_size_limit(static_cast<std::int32_t>(std::min<std::size_t>(size, 1 << 26)));
  properties.set_thrift_container_size_limit(10'000);
  return properties;
}

std::int64_t checked_rows(const parquet::FileMetaData& metadata, std::size_t file_size, const std::string& origin) {
  const std::int64_t most = decoded_limit(file_size) / static_cast<std::int64_t>(sizeof(std::int64_t));
  std::int64_t rows = 0;
  for (int group = 0; group < metadata.num_row_groups(); ++group) {
    const std::int64_t more = metadata.RowGroup(group)->num_rows();
    if (more < 0 || more > most - rows) {
      fail_input("{}: damaged: the footer promises {} rows in row group {}, impossible in {} bytes", origin, more,
                 group, file_size);
    }
    rows += more;
  }
  if (metadata.num_rows() != rows) {
    fail_input("{}: damaged: the footer promises {} rows, its row groups {}", origin, metadata.num_rows(), rows);
  }
  return rows;
}

template <class... Args>
void ChunkCheck::refuse(std::string_view column, int group, fmt::format_string<Args...> format, Args&&... args) const {
  fail_input("{}: damaged: column '{}', row group {}: {}", origin_, column, group,
             fmt::format(format, std::forward<Args>(args)...));
}

ChunkPlace ChunkCheck::place(std::string_view column, int leaf, int group, std::size_t value_bytes) {
  const auto row_group = metadata_.RowGroup(group);
  if (leaf >= row_group->num_columns()) refuse(column, group, "the footer does not say where its pages are");
  const auto said = row_group->ColumnChunk(leaf);
  if (said->crypto_metadata()) refuse(column, group, "it is encrypted; write the file without encryption");
  if (!said->file_path().empty())
    refuse(column, group, "its pages are in another file ({})", excerpt(said->file_path()));

  std::int64_t start = said->data_page_offset();
  if (said->has_dictionary_page() && said->dictionary_page_offset() > 0) {
    start = std::min(start, said->dictionary_page_offset());
  }
  const std::int64_t bytes = said->total_compressed_size();
  constexpr std::int64_t magic_size = 4;
  if (start < magic_size || bytes <= 0 || start > data_end_ || bytes > data_end_ - start) {
    refuse(column, group, "the footer puts its pages at byte {} ({} bytes), the data end at {}", start, bytes,
           data_end_);
  }
  compressed_ += bytes;
  if (compressed_ > data_end_) refuse(column, group, "the footer gives the columns more bytes than the file has");
  count(column, leaf, group, value_bytes);
  return {start, bytes};
}

void ChunkCheck::count(std::string_view column, int leaf, int group, std::size_t value_bytes) {
  const auto row_group = metadata_.RowGroup(group);
  const auto said = row_group->ColumnChunk(leaf);
  const bool is_list = metadata_.schema()->Column(leaf)->max_repetition_level() > 0;
  const std::int64_t rows = row_group->num_rows(), values = said->num_values(), pages = said->total_uncompressed_size();
  if (values < rows || (!is_list && values > rows)) {
    refuse(column, group, "the footer promises {} values in {} rows", values, rows);
  }
  const auto size = static_cast<std::int64_t>(value_bytes);
  if (values > room_ / size || pages < 0 || pages > limit_) {
    refuse(column, group, "the footer promises {} values ({} bytes of pages), too many for a file of {} bytes", values,
           pages, file_size_);
  }
  room_ -= values * size;
}

}  // namespace headscope
