// The footer of a capture file: which columns it has, of which types, and where their pages lie. Every claim is
// checked against the size of the file before memory is allocated for it.
#pragma once

#include <parquet/metadata.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/parquet_input.h"

namespace headscope {

enum class CapturedType { int32, uint32, int64, uint64, float16, float32, float64 };

struct CapturedColumn {
  std::string name;
  CapturedType type = CapturedType::int64;
  int max_repetition = 0;  // 1 for the vector
  int max_definition = 0;
  int list_definition = 0;               // of the vector: the lowest definition level of a row that has a component
  std::vector<ColumnChunk> chunks = {};  // one per row group that has rows
};

struct CapturedFile {
  std::int64_t rows = 0;
  CapturedColumn bucket, position, vector;
  std::optional<CapturedColumn> example_id, sliding_window;
};

// `origin` names the file in errors. Throws Error(Fault::input).
CapturedFile read_captured_footer(std::span<const std::uint8_t> file, const std::string& origin,
                                  const parquet::ReaderProperties& properties);

}  // namespace headscope
