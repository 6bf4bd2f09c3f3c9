// Files and errors of Arrow: what every source that uses Arrow or libparquet needs.
#pragma once

#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>
#include <arrow/result.h>
#include <arrow/status.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/error.h"

namespace headscope {

// Arrow's failures as exceptions. The functions below turn them into an Error that names the file.
template <class T>
T value_of(arrow::Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().message());
  return std::move(result).ValueUnsafe();
}
inline void check(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

// A library's message for the middle of a sentence: short, without the full stop at its end.
std::string reason_of(const std::exception& error);

// Returns what `body` returns. An exception of a library becomes an Error that names the place, a file or its column.
template <class Body>
auto reading_parquet(
    const std::string& place, Body&& body,
    fmt::format_string<const std::string&, std::string> message = "{}: is damaged, or not a Parquet table: {}") {
  try {
    return body();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    fail_runtime("{}: not enough memory to read it", place);
  } catch (const std::exception& error) {
    fail_input(message, place, reason_of(error));
  }
}
template <class Body>
auto writing_parquet(const std::string& file, Body&& body) {
  try {
    return body();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail_runtime("cannot write {}: {}", file, error.what());
  }
}

struct ArrowInput {
  std::shared_ptr<arrow::io::RandomAccessFile> file;
  std::size_t size = 0;
};

// Throws Error(Fault::input) naming the file when it cannot be read or is not a regular file.
ArrowInput open_input(const std::filesystem::path& file, arrow::MemoryPool& pool);
// The bytes must outlive the input.
ArrowInput input_of(std::span<const std::byte> bytes);

}  // namespace headscope
