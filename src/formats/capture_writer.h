// Writes captured queries or keys in the form that read_captured_vectors and other programs read.
#pragma once

#include <filesystem>

#include "formats/captured_vectors.h"

namespace headscope {

// Columns bucket, example_id, position (int32), vector (fixed-size list of float32), sliding_window (null); zstd, page
// checksums. Folders above the file are made; the file is written atomically.
void write_captured_vectors(const std::filesystem::path& file, const CapturedVectors& vectors);

}  // namespace headscope
