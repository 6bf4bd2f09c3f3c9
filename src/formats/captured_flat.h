// The columns of a capture that hold one number per row: bucket, position, example_id, sliding_window.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "formats/captured_footer.h"

namespace headscope {

struct IntegerRange {
  std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  std::int64_t highest = std::numeric_limits<std::int64_t>::max();
  std::string_view expected = {};  // for the message about a number outside
};

// Both throw ColumnFault naming the row, or an exception of libparquet.
std::vector<std::int64_t> read_integers(const CapturedColumn& column, const IntegerRange& range,
                                        const parquet::ReaderProperties& properties);
std::vector<double> read_windows(const CapturedColumn& column, const parquet::ReaderProperties& properties);

}  // namespace headscope
