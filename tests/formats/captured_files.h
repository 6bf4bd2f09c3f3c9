// Capture files for tests: written by Arrow's own writer, then changed byte by byte or field by field.
#pragma once

#include <arrow/api.h>
#include <gtest/gtest.h>
#include <parquet/properties.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "formats/captured_thrift.h"
#include "formats/captured_vectors.h"
#include "support/temporary_folder.h"

namespace headscope::test {

// A folder for one file, removed at the end of the test.
class CaptureFolder : public TemporaryFolder {
 public:
  // Writes bytes to data.parquet in it.
  [[nodiscard]] std::filesystem::path file(std::string_view bytes) const;
};

// What every valid file of these tests holds: exact in float16, no two neighbours alike.
inline double expected_component(std::int64_t row, std::int64_t component) {
  return static_cast<double>((31 * row + 7 * component) % 64 - 32) / 8;
}

std::shared_ptr<arrow::Array> from_json(const std::shared_ptr<arrow::DataType>& type, const std::string& json);

// bucket = row / 2, position = 5 row, example_id = row % 3 - 1, vector as expected_component, sliding_window null.
class Capture {
 public:
  explicit Capture(std::int64_t rows = 6, std::int64_t dim = 4,
                   const std::shared_ptr<arrow::DataType>& vector_type = arrow::list(arrow::float32()));
  Capture& set(const std::string& name, const std::shared_ptr<arrow::Array>& values);
  Capture& set(const std::string& name, const std::shared_ptr<arrow::DataType>& type, const std::string& json);
  Capture& drop(const std::string& name);
  Capture& nullable(bool allowed);

  using Change = std::function<void(parquet::WriterProperties::Builder&)>;
  // The bytes of the file. Without `change`: zstd, dictionaries, v1 pages, no checksums, one row group.
  [[nodiscard]] std::string write(const Change& change = {}, std::int64_t rows_per_group = 1 << 20) const;

 private:
  std::vector<std::pair<std::string, std::shared_ptr<arrow::Array>>> columns_;
  bool nullable_ = true;
};

CapturedVectors parse(std::string_view bytes, const CaptureReadOptions& options = {});

// The one line with which the reader refuses `bytes`. The test fails when it does not, or when the line is more than
// one, is no fault of the input or does not name the file.
std::string refusal(std::string_view bytes, const CaptureReadOptions& options = {});

// Checks all columns of a file that `Capture(rows, dim)` wrote.
void expect_capture(const CapturedVectors& captured, std::size_t rows, std::size_t dim);

}  // namespace headscope::test
