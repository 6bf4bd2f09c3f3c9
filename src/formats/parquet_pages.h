// The data pages of one Parquet column chunk and the values in them. libparquet reads page headers, verifies checksums,
// decompresses and decodes dictionaries; these classes limit its input and its memory.
#pragma once

#include <arrow/io/memory.h>
#include <arrow/memory_pool.h>
#include <parquet/column_page.h>
#include <parquet/column_reader.h>
#include <parquet/encoding.h>
#include <parquet/properties.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "formats/parquet_levels.h"

namespace headscope {

// A memory pool with a limit: a damaged page header may claim 2 GiB. Not for several threads.
class CappedPool final : public arrow::MemoryPool {
 public:
  explicit CappedPool(std::int64_t limit) : limit_(limit) {}
  void raise_limit(std::int64_t by) { limit_ += by; }
  [[nodiscard]] std::int64_t limit() const { return limit_; }
  using MemoryPool::Allocate;
  using MemoryPool::Free;
  using MemoryPool::Reallocate;
  arrow::Status Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) override;
  arrow::Status Reallocate(std::int64_t old_size, std::int64_t new_size, std::int64_t alignment,
                           std::uint8_t** ptr) override;
  void Free(std::uint8_t* buffer, std::int64_t size, std::int64_t alignment) override;
  [[nodiscard]] std::int64_t bytes_allocated() const override { return used_; }
  [[nodiscard]] std::int64_t total_bytes_allocated() const override { return total_; }
  [[nodiscard]] std::int64_t num_allocations() const override { return count_; }
  [[nodiscard]] std::string backend_name() const override { return "capped"; }

 private:
  [[nodiscard]] arrow::Status room_for(std::int64_t more) const;

  arrow::MemoryPool* base_ = arrow::default_memory_pool();
  std::int64_t limit_;
  std::int64_t used_ = 0;
  std::int64_t total_ = 0;
  std::int64_t count_ = 0;
};

// One column chunk as the footer describes it, checked against the file (parquet_input.h).
struct ColumnChunk {
  std::span<const std::uint8_t> bytes;
  std::int64_t uncompressed = 0;  // bytes of all its pages
  std::int64_t levels = 0;        // values, nulls included
  std::int64_t rows = 0;
  parquet::Compression::type codec = parquet::Compression::UNCOMPRESSED;
  bool always_compressed = false;  // Arrow before 3.0.0 wrote a wrong flag into compressed v2 pages
};

struct DataPage {
  int levels = 0;
  parquet::Encoding::type encoding = parquet::Encoding::PLAIN;
  std::span<const std::uint8_t> repetition;  // empty where the column does not repeat
  std::span<const std::uint8_t> definition;  // empty where the column cannot be null
  std::span<const std::uint8_t> values;
};

class ColumnPages {
 public:
  ColumnPages(const ColumnChunk& chunk, int max_repetition, int max_definition,
              const parquet::ReaderProperties& properties);
  // The next data page; it is valid until the next call. Nothing when the chunk has delivered what the footer promised.
  // `on_dictionary(std::span<const std::uint8_t>, int count)` is called for the dictionary page before it.
  template <class OnDictionary>
  std::optional<DataPage> next(OnDictionary&& on_dictionary) {
    for (;;) {
      const auto page = next_page();
      if (page == nullptr) return std::nullopt;
      if (page->type() != parquet::PageType::DICTIONARY_PAGE) return data_page(*page);
      const auto& dictionary = static_cast<const parquet::DictionaryPage&>(*page);
      on_dictionary(std::span(dictionary.data(), static_cast<std::size_t>(dictionary.size())), dictionary.num_values());
    }
  }

 private:
  std::shared_ptr<parquet::Page> next_page();
  DataPage data_page(const parquet::Page& page);
  void split_v1(const parquet::DataPageV1& page, DataPage& out) const;
  void split_v2(const parquet::DataPageV2& page, DataPage& out) const;

  ColumnChunk chunk_;
  int max_repetition_;
  int max_definition_;
  std::shared_ptr<arrow::io::BufferReader> stream_;
  std::unique_ptr<parquet::PageReader> reader_;
  std::shared_ptr<parquet::Page> page_;  // keeps the bytes of the last page
  std::int64_t levels_left_;
  std::int64_t uncompressed_left_;
  bool has_dictionary_ = false;
};

// The type of values in the file, and their type in memory. `half` is IEEE binary16, widened to float without loss.
enum class half : std::uint16_t {};

template <class Stored>
using MemoryType = std::conditional_t<std::is_same_v<Stored, half>, float, Stored>;
template <class Value>  // of libparquet's decoders
using ParquetType = std::conditional_t<
    std::is_same_v<Value, std::int32_t>, parquet::Int32Type,
    std::conditional_t<std::is_same_v<Value, std::int64_t>, parquet::Int64Type,
                       std::conditional_t<std::is_same_v<Value, float>, parquet::FloatType, parquet::DoubleType>>>;

// Decodes the values of the data pages of one chunk, in order, in batches of any size.
template <class Stored>
class PageValues {
 public:
  using Value = MemoryType<Stored>;

  explicit PageValues(arrow::MemoryPool* pool) : pool_(pool) {}
  void set_dictionary(std::span<const std::uint8_t> bytes, int count);
  // `count` values (nulls not among them) are encoded in page.values.
  void start(const DataPage& page, int count);
  void decode(Value* out, int count);

 private:
  using Type = ParquetType<Value>;  // `half` is widened before a decoder sees it

  arrow::MemoryPool* pool_;
  std::unique_ptr<parquet::DictDecoder<Type>> dictionary_;
  std::unique_ptr<parquet::TypedDecoder<Type>> delta_;  // integers only
  parquet::TypedDecoder<Type>* decoder_ = nullptr;      // dictionary_ or delta_; null: `values_` is read directly
  parquet::Encoding::type encoding_ = parquet::Encoding::PLAIN;
  std::span<const std::uint8_t> values_;
  std::size_t count_ = 0;
  std::size_t done_ = 0;
};

extern template class PageValues<std::int32_t>;
extern template class PageValues<std::int64_t>;
extern template class PageValues<float>;
extern template class PageValues<double>;
extern template class PageValues<half>;

}  // namespace headscope
