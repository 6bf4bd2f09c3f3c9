// Writes the captured queries or keys of one head, some rows after another, in the form that other programs read:
// columns bucket, example_id, position (int32), vector (fixed-size list of float32), sliding_window (null, or int64),
// and token_str where it is asked for; zstd, page checksums. formats/captured_vectors.h reads it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/atomic_file.h"

namespace headscope {

// DATA/l00h00q/data.parquet: the captured vectors of one head.
std::filesystem::path captured_file(const std::filesystem::path& data, std::int64_t layer, std::int64_t head,
                                    char kind);

struct CaptureColumns {
  std::size_t dim = 0;                         // components of a vector
  std::optional<std::int64_t> sliding_window;  // of every row
  bool token_str = false;
};

// One row for each bucket.
struct CaptureRows {
  std::span<const std::int32_t> bucket, example_id, position;
  std::span<const float> vectors;               // [rows, dim]
  std::span<const std::string> token_str = {};  // empty where the file has no such column
};

// Rows are written in groups of one size, so memory holds one of them, and the bytes do not depend on how rows came.
class CaptureWriter {
 public:
  // Folders above the file are made.
  CaptureWriter(const std::filesystem::path& file, const CaptureColumns& columns);
  ~CaptureWriter();
  CaptureWriter(const CaptureWriter&) = delete;
  CaptureWriter& operator=(const CaptureWriter&) = delete;

  void append(const CaptureRows& rows);
  // The file appears. Without it nothing remains. All throw Error(Fault::runtime) naming the file.
  void commit();

 private:
  struct State;
  void flush();

  std::filesystem::path path_;
  AtomicFile file_;
  std::unique_ptr<State> state_;
};

}  // namespace headscope
