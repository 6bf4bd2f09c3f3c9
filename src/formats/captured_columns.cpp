#include "formats/captured_columns.h"

#include <arrow/io/memory.h>
#include <parquet/column_page.h>

#include <cmath>
#include <optional>
#include <utility>

#include "core/missing.h"

namespace headscope {
namespace {

// Hands the pages of a chunk to libparquet's decoders, and compares them with what the footer promises.
class CheckedPages final : public parquet::PageReader {
 public:
  CheckedPages(const CapturedColumn& column, const ColumnChunk& chunk, const parquet::ReaderProperties& properties)
      : column_(column),
        chunk_(chunk),
        stream_(std::make_shared<arrow::io::BufferReader>(
            std::make_shared<arrow::Buffer>(chunk.bytes.data(), static_cast<std::int64_t>(chunk.bytes.size())))),
        reader_(Open(stream_, chunk.levels, chunk.codec, properties, chunk.always_compressed)),
        levels_left_(chunk.levels),
        bytes_left_(chunk.uncompressed) {
    // A header holds two statistics of one number each. libparquet tries to parse a damaged one with more and more
    // bytes.
    reader_->set_max_page_header_size(1 << 20);
  }

  std::shared_ptr<parquet::Page> NextPage() override {
    for (;;) {
      auto page = reader_->NextPage();
      if (page == nullptr) {
        check_end();
        return nullptr;
      }
      bytes_left_ -= page->size();
      if (bytes_left_ < 0)
        column_.fault("the pages hold more than the {} bytes that the footer promises", chunk_.uncompressed);
      if (page->type() == parquet::PageType::DICTIONARY_PAGE) return page;
      const auto& data = static_cast<const parquet::DataPage&>(*page);
      levels_left_ -= data.num_values();
      if (levels_left_ < 0)
        column_.fault("the pages hold more than the {} values that the footer promises", chunk_.levels);
      if (page->type() == parquet::PageType::DATA_PAGE) check_levels(static_cast<const parquet::DataPageV1&>(data));
      if (data.num_values() > 0) return page;  // libparquet takes an empty page for the end
    }
  }

  void set_max_page_header_size(std::uint32_t size) override { reader_->set_max_page_header_size(size); }

 private:
  void check_end() const {
    if (levels_left_ > 0)
      column_.fault("the pages end {} values short of the {} that the footer promises", levels_left_, chunk_.levels);
    const std::int64_t at = stream_->Tell().ValueOr(0);
    if (at != static_cast<std::int64_t>(chunk_.bytes.size()))
      column_.fault("the footer gives its pages {} bytes, they take {}", chunk_.bytes.size(), at);
  }

  // libparquet reads the bits of BIT_PACKED levels in the wrong order.
  void check_levels(const parquet::DataPageV1& page) const {
    const auto check = [&](int max_level, parquet::Encoding::type encoding) {
      if (max_level > 0 && encoding != parquet::Encoding::RLE)
        column_.fault(
            "the levels of a page are in encoding {}, expected RLE; write the file again with a current library",
            parquet::EncodingToString(encoding));
    };
    check(column_.leaf->max_repetition_level(), page.repetition_level_encoding());
    check(column_.leaf->max_definition_level(), page.definition_level_encoding());
  }

  const CapturedColumn& column_;
  const ColumnChunk& chunk_;
  std::shared_ptr<arrow::io::BufferReader> stream_;
  std::unique_ptr<parquet::PageReader> reader_;
  std::int64_t levels_left_;
  std::int64_t bytes_left_;
};

// Calls `take` with the number of each row, as the type that the file means; nothing stands for null. Parquet stores
// unsigned integers in signed types.
template <class Type, class Number, class Take>
void for_each_as(const CapturedColumn& column, const parquet::ReaderProperties& properties, Take take) {
  std::array<NumberOf<Type>, LevelBatch::most> values;
  for (const ColumnChunk& chunk : column.chunks) {
    for_each_batch<Type>(column, chunk, properties, values.data(), [&](const LevelBatch& levels) {
      const bool nulls = levels.values < levels.count;
      for (std::size_t i = 0, next = 0; i < levels.count; ++i) {
        const bool null = nulls && levels.definition[i] == 0;
        take(null ? std::optional<Number>() : static_cast<Number>(values[next++]));
      }
      return values.data();
    });
  }
}

template <class Take>
void for_each_number(const CapturedColumn& column, const parquet::ReaderProperties& properties, Take take) {
  switch (column.type) {
    case CapturedType::int32:
      return for_each_as<parquet::Int32Type, std::int32_t>(column, properties, take);
    case CapturedType::uint32:
      return for_each_as<parquet::Int32Type, std::uint32_t>(column, properties, take);
    case CapturedType::int64:
      return for_each_as<parquet::Int64Type, std::int64_t>(column, properties, take);
    case CapturedType::uint64:
      return for_each_as<parquet::Int64Type, std::uint64_t>(column, properties, take);
    case CapturedType::float16:
      return for_each_as<parquet::FLBAType, float>(column, properties, take);
    case CapturedType::float32:
      return for_each_as<parquet::FloatType, float>(column, properties, take);
    case CapturedType::float64:
      return for_each_as<parquet::DoubleType, double>(column, properties, take);
  }
}

}  // namespace

std::shared_ptr<parquet::ColumnReader> open_chunk(const CapturedColumn& column, const ColumnChunk& chunk,
                                                  const parquet::ReaderProperties& properties) {
  return parquet::ColumnReader::Make(column.leaf, std::make_unique<CheckedPages>(column, chunk, properties),
                                     properties.memory_pool());
}

std::vector<std::int64_t> read_integers(const CapturedColumn& column, const IntegerRange& range,
                                        const parquet::ReaderProperties& properties) {
  std::vector<std::int64_t> out;
  for_each_number(column, properties, [&]<class Number>(std::optional<Number> number) {
    if constexpr (std::is_integral_v<Number>) {  // the footer lets no other type through
      if (!number) column.fault("row {} is null, expected an integer", out.size());
      if (!std::in_range<std::int64_t>(*number))
        column.fault("row {} is {}, too large for a signed integer", out.size(), *number);
      const auto value = static_cast<std::int64_t>(*number);
      if (value < range.lowest || value > range.highest)
        column.fault("row {} is {}, expected {}", out.size(), value, range.expected);
      out.push_back(value);
    }
  });
  return out;
}

std::vector<double> read_windows(const CapturedColumn& column, const parquet::ReaderProperties& properties) {
  std::vector<double> out;
  for_each_number(column, properties, [&](auto number) {
    const double window = number ? static_cast<double>(*number) : missing;
    if (std::isinf(window)) column.fault("row {} is infinite; leave it null where there is no window", out.size());
    out.push_back(window);
  });
  return out;
}

}  // namespace headscope
