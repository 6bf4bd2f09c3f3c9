// Limits for Parquet files, which may be damaged or hostile. Every reader of Parquet uses them: it checks each claim of
// the footer against the size of the file before it takes memory.
#pragma once

#include <arrow/memory_pool.h>
#include <fmt/format.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headscope {

// The bytes that the values of a file of `size` bytes may take in memory. Real captures expand by less than two, tables
// by less than ten; a footer or page that claims more than this limit is damaged or hostile. The base is for small
// files of equal values, which compress without limit; a larger file of that kind can be written uncompressed.
inline constexpr std::int64_t decoded_base = std::int64_t{256} << 20;
inline constexpr std::int64_t decoded_per_byte = 64;
constexpr std::int64_t decoded_limit(std::size_t size) {
  return decoded_base + decoded_per_byte * static_cast<std::int64_t>(size);
}

// A memory pool with a limit: a damaged page header may claim 2 GiB. Not for several threads.
class CappedPool final : public arrow::ProxyMemoryPool {
 public:
  explicit CappedPool(std::int64_t limit) : ProxyMemoryPool(arrow::default_memory_pool()), limit_(limit) {}
  void raise_limit(std::int64_t by) { limit_ += by; }
  [[nodiscard]] std::int64_t limit() const { return limit_; }
  using MemoryPool::Allocate;
  using MemoryPool::Reallocate;
  arrow::Status Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) override;
  arrow::Status Reallocate(std::int64_t old_size, std::int64_t new_size, std::int64_t alignment,
                           std::uint8_t** ptr) override;

 private:
  [[nodiscard]] arrow::Status room_for(std::int64_t more) const;

  std::int64_t limit_;
};

// The memory that files read together may take. Arrow tables keep a pointer to the pool.
struct ReadLimits {
  CappedPool pool{decoded_base};
  std::int64_t room = decoded_base;  // bytes that values may still take, as the footers promise them

  // One more file. Checksums are verified; texts and lists that a header claims are bounded by the size of the file.
  parquet::ReaderProperties add_file(std::size_t size);
};

// The rows of all row groups. Throws Error(Fault::input) when they are more than the file can hold.
std::int64_t checked_rows(const parquet::FileMetaData& metadata, std::size_t file_size, const std::string& origin);

struct ChunkPlace {
  std::int64_t start = 0, bytes = 0;
};

// Checks the column chunks that the footer of one file describes. Throws Error(Fault::input) naming file, column and
// row group.
class ChunkCheck {
 public:
  ChunkCheck(const parquet::FileMetaData& metadata, std::size_t file_size, const std::string& origin,
             ReadLimits& limits)
      : metadata_(metadata),
        origin_(origin),
        room_(limits.room),
        file_size_(file_size),
        limit_(decoded_limit(file_size)),
        data_end_(static_cast<std::int64_t>(file_size) - trailer_size - metadata.size()) {}

  // Where the pages of the leaf lie. `column` is its name in errors. Takes `value_bytes` for each value from the room.
  ChunkPlace place(std::string_view column, int leaf, int group, std::size_t value_bytes);

  static constexpr std::int64_t trailer_size = 8;  // length of the footer, magic

 private:
  template <class... Args>
  [[noreturn]] void refuse(std::string_view column, int group, fmt::format_string<Args...> format,
                           Args&&... args) const;
  void count(std::string_view column, int leaf, int group, std::size_t value_bytes);

  const parquet::FileMetaData& metadata_;
  const std::string& origin_;
  std::int64_t& room_;
  std::size_t file_size_;
  std::int64_t limit_;
  std::int64_t data_end_;
  std::int64_t compressed_ = 0;
};

}  // namespace headscope
