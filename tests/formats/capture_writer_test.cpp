#include <gtest/gtest.h>

#include <limits>

#include "core/atomic_file.h"
#include "formats/captured_vectors.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::expect_error;
using test::TemporaryFolder;

CapturedVectors three_rows() {
  CapturedVectors vectors;
  vectors.rows = 3;
  vectors.dim = 2;
  vectors.bucket = {0, 1, 1};
  vectors.example_id = {7, std::numeric_limits<std::int32_t>::min(), 9};
  vectors.position = {0, 5, std::numeric_limits<std::int32_t>::max()};
  vectors.vector32 = {0.5F, 1, 2, 3, 4, 5};
  return vectors;
}

void use_float64(CapturedVectors& vectors) {
  vectors.vector32.clear();
  vectors.vector64 = {0.1, 1, 2, 3, 4, 1e300};  // two that float32 does not have
}

TEST(CaptureWriter, WhatIsWrittenIsRead) {
  const TemporaryFolder folder;
  CapturedVectors vectors = three_rows();
  for (const bool wide : {false, true}) {
    if (wide) use_float64(vectors);
    const auto file = folder / "new" / (wide ? "64.parquet" : "32.parquet");
    write_captured_vectors(file, vectors);
    const CapturedVectors again = read_captured_vectors(file);
    EXPECT_EQ(again.rows, 3U);
    EXPECT_EQ(again.dim, 2U);
    EXPECT_EQ(again.bucket, vectors.bucket);
    EXPECT_EQ(again.example_id, vectors.example_id);
    EXPECT_EQ(again.position, vectors.position);
    EXPECT_EQ(again.vector32, vectors.vector32);
    EXPECT_EQ(again.vector64, vectors.vector64);
  }
}

TEST(CaptureWriter, NumbersBeyond32BitsAreRefused) {
  const TemporaryFolder folder;
  for (const std::int64_t value : {std::int64_t{1} << 31, -(std::int64_t{1} << 31) - 1, std::int64_t{1} << 32}) {
    for (const auto& [name, column] :
         {std::pair("bucket", &CapturedVectors::bucket), std::pair("example_id", &CapturedVectors::example_id),
          std::pair("position", &CapturedVectors::position)}) {
      CapturedVectors vectors = three_rows();
      (vectors.*column)[1] = value;
      expect_error(Fault::runtime, fmt::format("x.parquet: column '{}', row 1: {} does not fit 32 bits", name, value),
                   [&] { write_captured_vectors(folder / "x.parquet", vectors); });
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "x.parquet"));
}

TEST(CaptureWriter, ArraysOfOtherSizesAreRefused) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& line, auto change) {
    CapturedVectors vectors = three_rows();
    change(vectors);
    expect_error(Fault::runtime, line, [&] { write_captured_vectors(folder / "x.parquet", vectors); });
  };
  refused("column 'bucket' has 2 values for 3 rows", [](auto& vectors) { vectors.bucket.pop_back(); });
  refused("column 'example_id' has 0 values for 3 rows", [](auto& vectors) { vectors.example_id.clear(); });
  refused("column 'position' has 4 values for 3 rows", [](auto& vectors) { vectors.position.push_back(1); });
  refused("column 'vector' has 5 values of 32 bits and 0 of 64 for 3 rows of 2 components",
          [](auto& vectors) { vectors.vector32.pop_back(); });
  refused("column 'vector' has 0 values of 32 bits and 0 of 64", [](auto& vectors) { vectors.vector32.clear(); });
  refused("column 'vector' has 6 values of 32 bits and 0 of 64 for 3 rows of 0 components",
          [](auto& vectors) { vectors.dim = 0; });
  refused("column 'vector' has 6 values of 32 bits and 6 of 64",
          [](auto& vectors) { vectors.vector64.assign(6, 1.0); });
  refused("column 'sliding_window' has values", [](auto& vectors) { vectors.sliding_window = {512, 512, 512}; });
}

TEST(CaptureWriter, AFolderThatCannotBeMadeIsNamed) {
  const TemporaryFolder folder;
  write_file(folder / "file", "");
  expect_error(Fault::runtime, "cannot make the folder",
               [&] { write_captured_vectors(folder / "file" / "l00h00q" / "data.parquet", three_rows()); });
}

}  // namespace
}  // namespace headscope
