// A capture file, through libparquet. Its footer says which columns it has, of which types, and where their pages lie:
// every claim is checked against the size of the file before memory is allocated for it. Its columns: the numbers of a
// flat column, the batches of any column.
#pragma once

#include <parquet/column_reader.h>
#include <parquet/metadata.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/error.h"
#include "formats/arrow_input.h"

namespace headscope {

enum class CapturedType { int32, uint32, int64, uint64, float16, float32, float64 };

// The pages of a column in one row group.
struct ColumnChunk {
  std::span<const std::uint8_t> bytes;
  std::int64_t uncompressed = 0;  // bytes of all its pages
  std::int64_t levels = 0;        // values, nulls included
  std::int64_t rows = 0;
  parquet::Compression::type codec = parquet::Compression::UNCOMPRESSED;
  bool always_compressed = false;  // Arrow before 3.0.0 wrote a wrong flag into compressed v2 pages
};

struct CapturedColumn {
  std::string name;
  std::string place;  // "FILE: column 'NAME'"
  CapturedType type = CapturedType::int64;
  const parquet::ColumnDescriptor* leaf = nullptr;  // in CapturedFile::metadata
  int list_definition = 0;               // of the vector: the lowest definition level of a row that has a component
  std::vector<ColumnChunk> chunks = {};  // one per row group that has rows

  // Throws Error(Fault::input) naming file and column.
  template <class... Args>
  [[noreturn]] void fault(fmt::format_string<Args...> format, Args&&... args) const {
    fail_input("{}: {}", place, fmt::format(format, std::forward<Args>(args)...));
  }
};

struct CapturedFile {
  std::shared_ptr<parquet::FileMetaData> metadata;
  std::int64_t rows = 0;
  CapturedColumn bucket, position, vector;
  std::optional<CapturedColumn> example_id, sliding_window;
};

// `origin` names the file in errors. Throws Error(Fault::input).
CapturedFile read_captured_footer(std::span<const std::uint8_t> file, const std::string& origin,
                                  const parquet::ReaderProperties& properties, ReadLimits& limits);

// The levels of values that were read together. They fit the processor's cache.
struct LevelBatch {
  static constexpr std::size_t most = 4096;
  std::size_t count = 0;
  std::size_t values = 0;  // fewer than levels where some are null
  std::array<std::int16_t, most> definition;
  std::array<std::int16_t, most> repetition;
};

// libparquet gives float16 as pointers to two bytes; they become float.
template <class Type>
using NumberOf = std::conditional_t<std::is_same_v<Type, parquet::FLBAType>, float, typename Type::c_type>;

// IEEE binary16, exact for every value: the exponent is rebiased by a multiplication, which also normalises subnormals.
inline float widen(std::uint16_t half) {
  const std::uint32_t bits = half;
  const float magnitude = std::bit_cast<float>((bits & 0x7fffU) << 13) * 0x1p112F;
  const std::uint32_t special = (bits & 0x7c00U) == 0x7c00U ? 0x7f800000U : 0U;  // infinity and NaN keep their exponent
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | special | ((bits & 0x8000U) << 16));
}

template <class Type>
void read_batch(parquet::TypedColumnReader<Type>& reader, LevelBatch& levels, NumberOf<Type>* out) {
  const auto read = [&](auto* values) {
    std::int64_t count = 0;
    levels.count = static_cast<std::size_t>(
        reader.ReadBatch(LevelBatch::most, levels.definition.data(), levels.repetition.data(), values, &count));
    levels.values = static_cast<std::size_t>(count);
  };
  if constexpr (std::is_same_v<Type, parquet::FLBAType>) {
    std::array<parquet::FLBA, LevelBatch::most> pointers;
    std::array<std::uint16_t, LevelBatch::most> halves;
    read(pointers.data());
    for (std::size_t i = 0; i < levels.values; ++i) std::memcpy(&halves[i], pointers[i].ptr, sizeof halves[i]);
    for (std::size_t i = 0; i < levels.values; ++i) out[i] = widen(halves[i]);  // its own loop is vectorised
  } else {
    read(out);
  }
}

// The pages of the chunk are compared with what the footer promises.
std::shared_ptr<parquet::ColumnReader> open_chunk(const CapturedColumn& column, const ColumnChunk& chunk,
                                                  const parquet::ReaderProperties& properties);

// Reads the chunk batch by batch into `out`. After each, `visit(const LevelBatch&)` returns where the next batch goes.
// Throws Error(Fault::input) or an exception of libparquet.
template <class Type, class Visit>
void for_each_batch(const CapturedColumn& column, const ColumnChunk& chunk, const parquet::ReaderProperties& properties,
                    NumberOf<Type>* out, Visit visit) {
  const auto opened = open_chunk(column, chunk, properties);
  auto& reader = static_cast<parquet::TypedColumnReader<Type>&>(*opened);
  LevelBatch levels;
  while (reader.HasNext()) {
    read_batch<Type>(reader, levels, out);
    const auto is_value = [&](std::int16_t level) { return level == column.leaf->max_definition_level(); };
    if (levels.count == 0 || (levels.values < levels.count &&
                              std::count_if(levels.definition.begin(), levels.definition.begin() + levels.count,
                                            is_value) != static_cast<std::ptrdiff_t>(levels.values)))
      column.fault("damaged: a page has fewer values than its header says");
    out = visit(std::as_const(levels));
  }
}

struct IntegerRange {
  std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  std::int64_t highest = std::numeric_limits<std::int64_t>::max();
  std::string_view expected = {};  // for the message about a number outside
};

// The columns that hold one number per row. Both throw Error(Fault::input) naming the row, or an exception of
// libparquet.
std::vector<std::int64_t> read_integers(const CapturedColumn& column, const IntegerRange& range,
                                        const parquet::ReaderProperties& properties);
std::vector<double> read_windows(const CapturedColumn& column, const parquet::ReaderProperties& properties);

}  // namespace headscope
