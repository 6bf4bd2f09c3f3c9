// Numbers as text of the page: coded in few bits, compressed, base64 (README.md: "Blocks").
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

// How a series is written.
struct BlockPrecision {
  int bits = 12;       // 12, 10 or 8
  bool exact = false;  // float32 instead
};

// One metric of one source as a block, with what a reader needs to undo it.
struct SeriesBlock {
  std::string codec;  // "d12", "d10", "d8" or "f32"
  int bits = 12;
  double low = 0, high = 0;  // of the values, or of their logarithms
  bool log = false;
  double error = 0;  // the largest, absolute; of the logarithm where `log`
  std::string text;  // base64(zlib(bytes))
};

// `values`: [head][moment], each head with `moments` values; what is not finite is missing. A logarithmic scale is
// taken where all values are above 0 and the largest is more than 100 times the smallest. Whole numbers that are names
// (`index`) stay exact: they take more bits where they need them.
SeriesBlock series_block(std::span<const double> values, std::size_t moments, const BlockPrecision& precision,
                         bool index = false);

// base64(zlib(bytes)), zlib at its level 9.
std::string block_text(std::string_view bytes);
std::string f32_block(std::span<const double> values);  // NaN where not finite

std::string base64(std::string_view bytes);

}  // namespace headscope
