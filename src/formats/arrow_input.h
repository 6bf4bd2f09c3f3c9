// Files, errors and limits of Arrow: what every source that uses Arrow or libparquet needs.
#pragma once

#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>
#include <arrow/result.h>
#include <arrow/status.h>
#include <fmt/format.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace headscope {

// Arrow's failures as exceptions. The functions below turn them into an Error that names the file.
template <class T>
T value_of(arrow::Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().message());
  return std::move(result).ValueUnsafe();
}
inline void check(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

// A library's message for the middle of a sentence: short, without the full stop at its end.
std::string reason_of(const std::exception& error);

// Returns what `body` returns. An exception of a library becomes an Error that names the place, a file or its column.
template <class Body>
auto reading_parquet(
    const std::string& place, Body&& body,
    fmt::format_string<const std::string&, std::string> message = "{}: is damaged, or not a Parquet table: {}") {
  try {
    return body();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    fail_runtime("{}: not enough memory to read it", place);
  } catch (const std::exception& error) {
    fail_input(message, place, reason_of(error));
  }
}
template <class Body>
auto writing_parquet(const std::string& file, Body&& body) {
  try {
    return body();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail_runtime("cannot write {}: {}", file, error.what());
  }
}

struct ArrowInput {
  std::shared_ptr<arrow::io::RandomAccessFile> file;
  std::size_t size = 0;
};

// Throws Error(Fault::input) naming the file when it cannot be read or is not a regular file.
ArrowInput open_input(const std::filesystem::path& file, arrow::MemoryPool& pool);
// The bytes must outlive the input.
ArrowInput input_of(std::span<const std::byte> bytes);

// Limits for Parquet files, which may be damaged or hostile. Every reader of Parquet uses them: it checks each claim of
// the footer against the size of the file before it takes memory.

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
