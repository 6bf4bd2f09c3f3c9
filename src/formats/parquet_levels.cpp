#include "formats/parquet_levels.h"

#include <algorithm>
#include <bit>

namespace headscope {

LevelRuns::LevelRuns(std::span<const std::uint8_t> bytes, int max_level, std::size_t count)
    : bytes_(bytes), max_level_(max_level), bits_(max_level > 1 ? 2 : 1), left_(count) {}

// An unsigned number in 7-bit groups, low group first.
std::uint32_t LevelRuns::next_header() {
  std::uint64_t header = 0;
  for (int shift = 0; shift < 35; shift += 7) {
    if (bytes_.empty()) column_fault("the levels of a page end {} short of its header's count", left_);
    const std::uint8_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    header |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) {
      if (header > 0xffffffffU) break;
      return static_cast<std::uint32_t>(header);
    }
  }
  column_fault("the levels of a page hold an impossible run length");
}

bool LevelRuns::next(LevelRun& run) {
  // A run may have no levels. It takes at least one byte, so the loop ends.
  for (run.count = 0; run.count == 0 && left_ > 0;) {
    const std::uint32_t header = next_header();
    run.bits = bits_;
    if ((header & 1) != 0) {
      const std::size_t claimed = std::size_t{header >> 1} * static_cast<std::size_t>(bits_);
      const std::size_t size = std::min(claimed, bytes_.size());  // some writers cut the padding of the last group
      run.packed = bytes_.data();
      run.count = std::min(size * 8 / static_cast<std::size_t>(bits_), left_);
      bytes_ = bytes_.subspan(size);
    } else {
      if (bytes_.empty()) column_fault("the levels of a page end within a run");
      run.packed = nullptr;
      run.value = bytes_.front();
      run.count = std::min<std::size_t>(header >> 1, left_);
      bytes_ = bytes_.subspan(1);
      if (run.value > max_level_)
        column_fault("the levels of a page hold {}, at most {} is possible", run.value, max_level_);
    }
    left_ -= run.count;
  }
  return run.count > 0;
}

namespace {

std::size_t first_other(const LevelRun& run, int level) {
  if (run.packed == nullptr) return run.value == level ? run.count : 0;
  const auto bits = static_cast<std::size_t>(run.bits);
  const int repeated = bits == 1 ? level * 0xff : level * 0x55;  // one byte full of `level`
  std::size_t i = 0;
  while (i + 8 / bits <= run.count && run.packed[i * bits / 8] == repeated) i += 8 / bits;
  while (i < run.count && run.at(i) == level) ++i;
  return i;
}

}  // namespace

std::optional<LevelBelow> first_below(std::span<const std::uint8_t> bytes, int max_level, std::size_t count) {
  LevelRuns runs(bytes, max_level, count);
  LevelRun run;
  for (std::size_t base = 0; runs.next(run); base += run.count) {
    const std::size_t i = first_other(run, max_level);
    if (i == run.count) continue;
    if (run.at(i) > max_level)
      column_fault("the levels of a page hold {}, at most {} is possible", run.at(i), max_level);
    return LevelBelow{base + i, run.at(i)};
  }
  return std::nullopt;
}

void EqualRows::follow(std::span<const std::uint8_t> repetition, std::size_t count) {
  LevelRuns runs(repetition, 1, count);
  for (LevelRun run; runs.next(run);) {
    if (!open_ && run.at(0) != 0) column_fault("the first page starts in the middle of row {}", rows_);
    if (run.packed != nullptr) {
      follow_packed(run.packed, run.count);
    } else if (run.value == 1) {
      length_ += run.count;
    } else {
      for (std::size_t i = 0; i < run.count; ++i) start_row();
    }
  }
}

void EqualRows::follow_packed(const std::uint8_t* packed, std::size_t count) {
  for (; count > 0; ++packed) {
    const std::size_t levels = std::min<std::size_t>(count, 8);
    count -= levels;
    std::size_t counted = 0;
    for (unsigned starts = ~static_cast<unsigned>(*packed) & ((1U << levels) - 1); starts != 0; starts &= starts - 1) {
      const auto at = static_cast<std::size_t>(std::countr_zero(starts));
      length_ += at - counted;
      start_row();
      counted = at + 1;
    }
    length_ += levels - counted;
  }
}

void EqualRows::start_row() {
  if (open_) close_row();
  open_ = true;
  length_ = 1;
}

void EqualRows::close_row() {
  if (rows_ == 0) components_ = length_;
  if (length_ != components_) {
    column_fault("row {} has {} components, expected {} as in row 0", rows_, length_, components_);
  }
  ++rows_;
}

void EqualRows::end_chunk() {
  if (open_) close_row();
  open_ = false;
}

}  // namespace headscope
