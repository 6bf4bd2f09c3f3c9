#include "formats/parquet_pages.h"

#include <arrow/buffer.h>
#include <arrow/status.h>

#include <limits>
#include <type_traits>

namespace headscope {

arrow::Status CappedPool::room_for(std::int64_t more) const {
  if (more <= limit_ - used_) return arrow::Status::OK();
  return arrow::Status::OutOfMemory("a page claims ", more, " bytes, more than a file of this size can mean");
}

arrow::Status CappedPool::Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) {
  ARROW_RETURN_NOT_OK(room_for(size));
  ARROW_RETURN_NOT_OK(base_->Allocate(size, alignment, out));
  used_ += size;
  total_ += size;
  ++count_;
  return arrow::Status::OK();
}

arrow::Status CappedPool::Reallocate(std::int64_t old_size, std::int64_t new_size, std::int64_t alignment,
                                     std::uint8_t** ptr) {
  ARROW_RETURN_NOT_OK(room_for(new_size - old_size));
  ARROW_RETURN_NOT_OK(base_->Reallocate(old_size, new_size, alignment, ptr));
  used_ += new_size - old_size;
  total_ += new_size > old_size ? new_size - old_size : 0;
  ++count_;
  return arrow::Status::OK();
}

void CappedPool::Free(std::uint8_t* buffer, std::int64_t size, std::int64_t alignment) {
  base_->Free(buffer, size, alignment);
  used_ -= size;
}

ColumnPages::ColumnPages(const ColumnChunk& chunk, int max_repetition, int max_definition,
                         const parquet::ReaderProperties& properties)
    : chunk_(chunk),
      max_repetition_(max_repetition),
      max_definition_(max_definition),
      stream_(std::make_shared<arrow::io::BufferReader>(
          std::make_shared<arrow::Buffer>(chunk.bytes.data(), static_cast<std::int64_t>(chunk.bytes.size())))),
      reader_(parquet::PageReader::Open(stream_, chunk.levels, chunk.codec, properties, chunk.always_compressed)),
      levels_left_(chunk.levels),
      uncompressed_left_(chunk.uncompressed) {
  // A header holds two statistics of one number each. libparquet tries to parse a damaged one with more and more bytes.
  reader_->set_max_page_header_size(1 << 20);
}

std::shared_ptr<parquet::Page> ColumnPages::next_page() {
  page_ = reader_->NextPage();
  if (page_ == nullptr) {
    if (levels_left_ > 0) {
      column_fault("the pages end {} values short of the {} that the footer promises", levels_left_, chunk_.levels);
    }
    const auto at = stream_->Tell().ValueOr(0);
    if (at != static_cast<std::int64_t>(chunk_.bytes.size())) {
      column_fault("the footer gives its pages {} bytes, they take {}", chunk_.bytes.size(), at);
    }
    return nullptr;
  }
  uncompressed_left_ -= page_->size();
  if (uncompressed_left_ < 0) {
    column_fault("the pages hold more than the {} bytes that the footer promises", chunk_.uncompressed);
  }
  if (page_->type() == parquet::PageType::DICTIONARY_PAGE) {
    if (has_dictionary_) column_fault("a second dictionary page in one column chunk");
    has_dictionary_ = true;
  }
  return page_;
}

DataPage ColumnPages::data_page(const parquet::Page& page) {
  const auto& data = static_cast<const parquet::DataPage&>(page);
  DataPage out;
  out.levels = data.num_values();
  out.encoding = data.encoding();
  if (out.levels > levels_left_) {
    column_fault("the pages hold more than the {} values that the footer promises", chunk_.levels);
  }
  levels_left_ -= out.levels;
  if (page.type() == parquet::PageType::DATA_PAGE) {
    split_v1(static_cast<const parquet::DataPageV1&>(page), out);
  } else {
    split_v2(static_cast<const parquet::DataPageV2&>(page), out);
  }
  return out;
}

namespace {

std::span<const std::uint8_t> take(std::span<const std::uint8_t>& bytes, std::int64_t size) {
  if (size < 0 || size > static_cast<std::int64_t>(bytes.size())) {
    column_fault("the levels of a page claim {} bytes, {} are left", size, bytes.size());
  }
  const auto taken = bytes.first(static_cast<std::size_t>(size));
  bytes = bytes.subspan(taken.size());
  return taken;
}

std::span<const std::uint8_t> take_prefixed(std::span<const std::uint8_t>& bytes, parquet::Encoding::type encoding) {
  if (encoding != parquet::Encoding::RLE) {
    column_fault("the levels of a page are in encoding {}, expected RLE; write the file again with a current library",
                 parquet::EncodingToString(encoding));
  }
  std::uint32_t size = 0;
  std::memcpy(&size, take(bytes, sizeof(size)).data(), sizeof(size));
  return take(bytes, size);
}

}  // namespace

void ColumnPages::split_v1(const parquet::DataPageV1& page, DataPage& out) const {
  out.values = std::span(page.data(), static_cast<std::size_t>(page.size()));
  if (max_repetition_ > 0) out.repetition = take_prefixed(out.values, page.repetition_level_encoding());
  if (max_definition_ > 0) out.definition = take_prefixed(out.values, page.definition_level_encoding());
}

void ColumnPages::split_v2(const parquet::DataPageV2& page, DataPage& out) const {
  out.values = std::span(page.data(), static_cast<std::size_t>(page.size()));
  out.repetition = take(out.values, page.repetition_levels_byte_length());
  out.definition = take(out.values, page.definition_levels_byte_length());
}

namespace {

// Exact for every binary16 value: the exponent is rebiased by a multiplication, which also normalises subnormals.
float widen(half value) {
  const auto bits = static_cast<std::uint32_t>(value);
  const float magnitude = std::bit_cast<float>((bits & 0x7fffU) << 13) * 0x1p112F;
  const std::uint32_t special = (bits & 0x7c00U) == 0x7c00U ? 0x7f800000U : 0U;  // infinity and NaN keep their exponent
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | special | ((bits & 0x8000U) << 16));
}

template <class Stored, class Value>
void read_plain(const std::uint8_t* bytes, std::size_t count, Value* out) {
  if constexpr (std::is_same_v<Stored, Value>) {
    if (count > 0) std::memcpy(out, bytes, count * sizeof(Stored));  // empty arrays may have no address
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      Stored stored;
      std::memcpy(&stored, bytes + i * sizeof(Stored), sizeof(Stored));
      out[i] = widen(stored);
    }
  }
}

// BYTE_STREAM_SPLIT: first byte of all values, second byte of all values, ...
template <class Stored, class Value>
void read_split(const std::uint8_t* bytes, std::size_t stride, std::size_t count, Value* out) {
  using Bits = std::conditional_t<sizeof(Stored) == 2, std::uint16_t,
                                  std::conditional_t<sizeof(Stored) == 4, std::uint32_t, std::uint64_t>>;
  for (std::size_t i = 0; i < count; ++i) {
    Bits bits = 0;
    for (std::size_t b = 0; b < sizeof(Stored); ++b) {
      bits = static_cast<Bits>(bits | static_cast<Bits>(static_cast<Bits>(bytes[b * stride + i]) << (8 * b)));
    }
    if constexpr (std::is_same_v<Stored, Value>) {
      out[i] = std::bit_cast<Value>(bits);
    } else {
      out[i] = widen(static_cast<Stored>(bits));
    }
  }
}

}  // namespace

template <class Stored>
void PageValues<Stored>::set_dictionary(std::span<const std::uint8_t> bytes, int count) {
  if (count < 0 || bytes.size() != static_cast<std::size_t>(count) * sizeof(Stored)) {
    column_fault("the dictionary page has {} bytes for {} values of {} bytes", bytes.size(), count, sizeof(Stored));
  }
  constexpr int most = std::numeric_limits<int>::max() / static_cast<int>(sizeof(Value));  // libparquet counts in int
  if (count > most) column_fault("the dictionary page has {} values, at most {} are supported", count, most);
  std::vector<Value> values(static_cast<std::size_t>(count));
  read_plain<Stored>(bytes.data(), values.size(), values.data());
  const auto plain = parquet::MakeTypedDecoder<Type>(parquet::Encoding::PLAIN, nullptr, pool_);
  plain->SetData(count, reinterpret_cast<const std::uint8_t*>(values.data()),
                 static_cast<int>(values.size() * sizeof(Value)));
  dictionary_ = parquet::MakeDictDecoder<Type>(nullptr, pool_);
  dictionary_->SetDict(plain.get());
}

template <class Stored>
void PageValues<Stored>::start(const DataPage& page, int count) {
  encoding_ = page.encoding;
  values_ = page.values;
  count_ = static_cast<std::size_t>(count);
  done_ = 0;
  decoder_ = nullptr;
  switch (encoding_) {
    case parquet::Encoding::PLAIN:
    case parquet::Encoding::BYTE_STREAM_SPLIT:
      if (values_.size() != count_ * sizeof(Stored)) {
        column_fault("a page has {} bytes for {} values of {} bytes", values_.size(), count_, sizeof(Stored));
      }
      return;
    case parquet::Encoding::PLAIN_DICTIONARY:
    case parquet::Encoding::RLE_DICTIONARY:
      if (dictionary_ == nullptr) column_fault("a page refers to a dictionary, but there is none");
      decoder_ = dictionary_.get();
      break;
    case parquet::Encoding::DELTA_BINARY_PACKED:
      if constexpr (std::is_integral_v<Stored>) {
        delta_ = parquet::MakeTypedDecoder<Type>(encoding_, nullptr, pool_);
        decoder_ = delta_.get();
        break;
      }
      [[fallthrough]];
    default:
      column_fault("values in encoding {} are not supported; write the file again as PLAIN or with a dictionary",
                   parquet::EncodingToString(encoding_));
  }
  // An empty page has no header for the decoder to read.
  if (count > 0) decoder_->SetData(count, values_.data(), static_cast<int>(values_.size()));
}

template <class Stored>
void PageValues<Stored>::decode(Value* out, int count) {
  const auto n = static_cast<std::size_t>(count);
  if (decoder_ != nullptr) {
    const int decoded = count > 0 ? decoder_->Decode(out, count) : 0;
    if (decoded != count) column_fault("a page ends {} values short of its header's count", count - decoded);
  } else if (encoding_ == parquet::Encoding::PLAIN) {
    read_plain<Stored>(values_.data() + done_ * sizeof(Stored), n, out);
  } else {
    read_split<Stored>(values_.data() + done_, count_, n, out);
  }
  done_ += n;
}

template class PageValues<std::int32_t>;
template class PageValues<std::int64_t>;
template class PageValues<float>;
template class PageValues<double>;
template class PageValues<half>;

}  // namespace headscope
