#include "formats/captured_flat.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/missing.h"

namespace headscope {

namespace {

// The values of a column without lists. `present` is empty when none is null; a null's value is 0.
template <class Value>
struct FlatValues {
  std::vector<Value> values;
  std::vector<bool> present;

  [[nodiscard]] bool is_null(std::size_t row) const { return !present.empty() && !present[row]; }
};

// Which rows of a page are null; returns how many are not.
std::size_t follow_nulls(const DataPage& page, std::size_t first_row, std::vector<bool>& present) {
  const auto levels = static_cast<std::size_t>(page.levels);
  const auto gap = first_below(page.definition, 1, levels);
  if (gap && present.empty()) present.resize(first_row, true);
  if (present.empty() && !gap) return levels;
  std::size_t count = 0;
  LevelRuns runs(page.definition, 1, levels);
  for (LevelRun run; runs.next(run);) {
    for (std::size_t i = 0; i < run.count; ++i) {
      present.push_back(run.at(i) == 1);
      count += present.back() ? 1 : 0;
    }
  }
  return count;
}

template <class Stored>
auto read_flat(const CapturedColumn& column, const parquet::ReaderProperties& properties) {
  FlatValues<typename PageValues<Stored>::Value> flat;
  for (const auto& chunk : column.chunks) {
    ColumnPages pages(chunk, 0, column.max_definition, properties);
    PageValues<Stored> values(properties.memory_pool());
    const auto on_dictionary = [&](auto bytes, int count) { values.set_dictionary(bytes, count); };
    while (const auto page = pages.next(on_dictionary)) {
      const std::size_t first = flat.values.size();
      const auto levels = static_cast<std::size_t>(page->levels);
      const std::size_t count = column.max_definition > 0 ? follow_nulls(*page, first, flat.present) : levels;
      flat.values.resize(first + levels);
      values.start(*page, static_cast<int>(count));
      values.decode(flat.values.data() + first, static_cast<int>(count));
      // The page has no gaps where values are null: move each value to its row, the last one first.
      for (std::size_t row = first + levels, next = first + count; row-- > first && next <= row;) {
        flat.values[row] = flat.present[row] ? flat.values[--next] : 0;
      }
    }
  }
  return flat;
}

// The values as integers of type As: Parquet stores unsigned integers in signed types.
template <class As, class Value>
std::vector<std::int64_t> integers(const FlatValues<Value>& flat) {
  std::vector<std::int64_t> out(flat.values.size());
  for (std::size_t row = 0; row < out.size(); ++row) {
    if (flat.is_null(row)) column_fault("row {} is null, expected an integer", row);
    const auto value = static_cast<As>(flat.values[row]);
    if (!std::in_range<std::int64_t>(value)) column_fault("row {} is {}, too large for a signed integer", row, value);
    out[row] = static_cast<std::int64_t>(value);
  }
  return out;
}

template <class As, class Value>
std::vector<double> windows(const FlatValues<Value>& flat) {
  std::vector<double> out(flat.values.size());
  for (std::size_t row = 0; row < out.size(); ++row) {
    const auto window = static_cast<double>(static_cast<As>(flat.values[row]));
    if (std::isinf(window)) column_fault("row {} is infinite; leave it null where there is no window", row);
    out[row] = flat.is_null(row) ? missing : window;
  }
  return out;
}

std::vector<std::int64_t> read_any(const CapturedColumn& column, const parquet::ReaderProperties& properties) {
  switch (column.type) {
    case CapturedType::int32:
      return integers<std::int32_t>(read_flat<std::int32_t>(column, properties));
    case CapturedType::uint32:
      return integers<std::uint32_t>(read_flat<std::int32_t>(column, properties));
    case CapturedType::int64:
      return integers<std::int64_t>(read_flat<std::int64_t>(column, properties));
    default:
      return integers<std::uint64_t>(read_flat<std::int64_t>(column, properties));
  }
}

}  // namespace

std::vector<std::int64_t> read_integers(const CapturedColumn& column, const IntegerRange& range,
                                        const parquet::ReaderProperties& properties) {
  auto values = read_any(column, properties);
  const auto outside = [&](std::int64_t value) { return value < range.lowest || value > range.highest; };
  const auto bad = std::find_if(values.begin(), values.end(), outside);
  if (bad != values.end()) column_fault("row {} is {}, expected {}", bad - values.begin(), *bad, range.expected);
  return values;
}

std::vector<double> read_windows(const CapturedColumn& column, const parquet::ReaderProperties& properties) {
  switch (column.type) {
    case CapturedType::int32:
      return windows<std::int32_t>(read_flat<std::int32_t>(column, properties));
    case CapturedType::uint32:
      return windows<std::uint32_t>(read_flat<std::int32_t>(column, properties));
    case CapturedType::int64:
      return windows<std::int64_t>(read_flat<std::int64_t>(column, properties));
    case CapturedType::uint64:
      return windows<std::uint64_t>(read_flat<std::int64_t>(column, properties));
    case CapturedType::float16:
      return windows<float>(read_flat<half>(column, properties));
    case CapturedType::float32:
      return windows<float>(read_flat<float>(column, properties));
    default:
      return windows<double>(read_flat<double>(column, properties));
  }
}

}  // namespace headscope
