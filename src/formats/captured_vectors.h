// Captured queries or keys of one head: l{LL}h{HH}{q|k}/data.parquet (columns bucket, example_id, position, vector,
// sliding_window; found by name, others ignored).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/large_memory.h"

namespace headscope {

struct CapturedVectors {
  std::string origin;  // how errors name the file
  std::size_t rows = 0;
  std::size_t dim = 0;
  std::vector<std::int64_t> bucket;      // [rows], >= 0
  std::vector<std::int64_t> example_id;  // [rows]; the row number where the file has no such column
  std::vector<std::int64_t> position;    // [rows], >= 0
  std::vector<double> sliding_window;    // [rows], NaN for null; empty where the file has no such column
  // Row-major [rows, dim]. float16 and float32 files fill `vector32`, float64 files fill `vector64`; the other is
  // empty.
  std::vector<float, UninitialisedAllocator<float>> vector32;
  std::vector<double, UninitialisedAllocator<double>> vector64;

  std::size_t dropped_nonfinite = 0;  // rows left out because of a NaN or an infinity (drop_nonfinite)
  std::string content_hash;           // XXH3 (128 bits, hex) of the file's bytes
};

struct CaptureReadOptions {
  bool drop_nonfinite = false;  // leave such rows out and count them; by default they are an error
};

// Throws Error(Fault::input) with one line naming the file and the row or column when the file is missing, damaged or
// not of the expected form. Nothing of a damaged file is returned.
// Rows and components are counted from 0.
CapturedVectors read_captured_vectors(const std::filesystem::path& file, const CaptureReadOptions& options = {});

// The same for a file that is in memory already; `origin` is how errors name it.
CapturedVectors parse_captured_vectors(std::span<const std::byte> bytes, const std::string& origin,
                                       const CaptureReadOptions& options = {});

// Writes them in the form that read_captured_vectors and other programs read: columns bucket, example_id, position
// (int32), vector (fixed-size list of float32 or float64, as given), sliding_window (null); zstd, page checksums.
// Folders above the file are made; the file is written atomically. Throws Error(Fault::runtime) naming the file, and
// column and row, for what these columns cannot hold: a number beyond 32 bits, arrays whose sizes differ, a sliding
// window.
void write_captured_vectors(const std::filesystem::path& file, const CapturedVectors& vectors);

}  // namespace headscope
