// Repetition and definition levels of one Parquet data page (parquet-format, Encodings.md: "Run Length Encoding /
// Bit-Packing Hybrid"). They are followed run by run and never expanded: a row of 128 components costs two runs.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

namespace headscope {

// A fault inside one column. The message names rows; the caller adds the file and the column.
struct ColumnFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class... Args>
[[noreturn]] void column_fault(fmt::format_string<Args...> format, Args&&... args) {
  throw ColumnFault(fmt::format(format, std::forward<Args>(args)...));
}

struct LevelRun {
  std::size_t count = 0;
  int value = 0;                         // of every level, where `packed` is null
  const std::uint8_t* packed = nullptr;  // `bits` bits each, low bits first
  int bits = 1;

  [[nodiscard]] int at(std::size_t i) const {
    if (packed == nullptr) return value;
    const std::size_t bit = i * static_cast<std::size_t>(bits);
    return (packed[bit / 8] >> (bit % 8)) & ((1 << bits) - 1);
  }
};

class LevelRuns {
 public:
  // `count` levels of 0..max_level lie in `bytes`.
  LevelRuns(std::span<const std::uint8_t> bytes, int max_level, std::size_t count);
  // False when `count` levels have been delivered. Throws ColumnFault when the bytes end before.
  bool next(LevelRun& run);

 private:
  std::uint32_t next_header();

  std::span<const std::uint8_t> bytes_;
  int max_level_;
  int bits_;
  std::size_t left_;
};

struct LevelBelow {
  std::size_t index;
  int level;
};

// The first level below the largest one: where a null or an empty list is.
std::optional<LevelBelow> first_below(std::span<const std::uint8_t> bytes, int max_level, std::size_t count);

// Follows the repetition levels (0 starts a row, 1 continues it) of a list column through the file and checks that all
// rows have as many components as the first.
class EqualRows {
 public:
  // Rows may continue over pages, never over chunks.
  void start_chunk() { open_ = false; }
  void follow(std::span<const std::uint8_t> repetition, std::size_t count);
  void end_chunk();

  [[nodiscard]] std::size_t rows() const { return rows_; }              // complete ones
  [[nodiscard]] std::size_t components() const { return components_; }  // of every complete row; 0 before the first
  [[nodiscard]] std::size_t length() const { return length_; }          // of the row that is being followed

 private:
  void start_row();
  void close_row();
  void follow_packed(const std::uint8_t* packed, std::size_t count);

  bool open_ = false;
  std::size_t rows_ = 0;
  std::size_t components_ = 0;
  std::size_t length_ = 0;
};

}  // namespace headscope
