// The footer of a capture file: which columns it has, of which types, and where their pages lie. Every claim is
// checked against the size of the file before memory is allocated for it.
#pragma once

#include <parquet/metadata.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "formats/parquet_input.h"

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

}  // namespace headscope
