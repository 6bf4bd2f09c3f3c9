// Writes captured queries or keys in the form that read_captured_vectors and other programs read.
#pragma once

#include <filesystem>

#include "formats/captured_vectors.h"

namespace headscope {

// Columns bucket, example_id, position (int32), vector (fixed-size list of float32 or float64, as given),
// sliding_window (null); zstd, page checksums. Folders above the file are made; the file is written atomically.
// Throws Error(Fault::runtime) naming the file, and column and row, for what these columns cannot hold: a number beyond
// 32 bits, arrays whose sizes differ, a sliding window.
void write_captured_vectors(const std::filesystem::path& file, const CapturedVectors& vectors);

}  // namespace headscope
