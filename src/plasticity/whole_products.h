// Signs of many scalar products of rounded vectors, in whole numbers: exact, and with AVX2 half as fast again as
// float32.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace headscope {

// The length of a row: products of two rows, and all their partial sums, then fit into 32 bits.
inline constexpr double longest_row = 32767;

// Components are multiplied in twos.
constexpr std::size_t even_width(std::size_t dim) {
  return dim + dim % 2;
}

inline constexpr std::size_t column_block = 16, row_block = 6;  // their sums fill twelve of sixteen vector registers

// Rows of `width` components as columns, in blocks of sixteen, filled up with zeros: for each block and each two
// components, the two of each column side by side.
inline void pack_columns(std::span<const std::int16_t> rows, std::size_t width, std::vector<std::int16_t>& packed) {
  const std::size_t count = rows.size() / width, blocks = (count + column_block - 1) / column_block;
  packed.assign(blocks * column_block * width, 0);
  for (std::size_t row = 0; row < count; ++row) {
    std::int16_t* block = packed.data() + row / column_block * column_block * width + row % column_block * 2;
    for (std::size_t i = 0; i < width; i += 2) {
      block[i * column_block] = rows[row * width + i];
      block[i * column_block + 1] = rows[row * width + i + 1];
    }
  }
}

// The products of `Rows` rows with a block of columns. A function of its own with constant places, so that the sums
// stay in registers.
template <std::size_t... Row>
[[gnu::noinline]] void multiply_block(const std::int16_t* x, const std::int16_t* columns, std::size_t width,
                                      std::int32_t (*product)[column_block], std::index_sequence<Row...>) {
#ifdef __AVX2__
  const auto two_of = [&](std::size_t row, std::size_t i) {
    std::int32_t both = 0;
    std::memcpy(&both, x + row * width + i, sizeof both);
    return _mm256_set1_epi32(both);
  };
  const __m256i zero = _mm256_setzero_si256();
  __m256i left[] = {(static_cast<void>(Row), zero)...}, right[] = {(static_cast<void>(Row), zero)...};
  for (std::size_t i = 0; i < width; i += 2) {
    const auto* at = reinterpret_cast<const __m256i*>(columns + i * column_block);
    const __m256i left_columns = _mm256_loadu_si256(at), right_columns = _mm256_loadu_si256(at + 1);
    ((left[Row] = _mm256_add_epi32(left[Row], _mm256_madd_epi16(two_of(Row, i), left_columns)),
      right[Row] = _mm256_add_epi32(right[Row], _mm256_madd_epi16(two_of(Row, i), right_columns))),
     ...);
  }
  ((_mm256_storeu_si256(reinterpret_cast<__m256i*>(product[Row]), left[Row]),
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(product[Row]) + 1, right[Row])),
   ...);
#else
  for (const std::size_t row : {Row...}) {
    std::int32_t sum[column_block] = {};
    for (std::size_t i = 0; i < width; i += 2) {
      const std::int32_t one = x[row * width + i], two = x[row * width + i + 1];
      const std::int16_t* at = columns + i * column_block;
      for (std::size_t c = 0; c < column_block; ++c) sum[c] += one * at[2 * c] + two * at[2 * c + 1];
    }
    std::copy_n(sum, column_block, product[row]);
  }
#endif
}

// Adds 2 to sums[c] for each product above the limit; returns those within ±limit, a bit each.
inline unsigned compare(const std::int32_t* product, std::int32_t limit, std::int32_t* sums) {
  unsigned within = 0;
#ifdef __AVX2__
  const __m256i high = _mm256_set1_epi32(limit), low = _mm256_set1_epi32(-limit - 1);
  for (unsigned c = 0; c < column_block; c += 8) {
    const __m256i found = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(product + c));
    const __m256i above = _mm256_cmpgt_epi32(found, high);
    auto* const sum = reinterpret_cast<__m256i*>(sums + c);
    _mm256_storeu_si256(sum, _mm256_sub_epi32(_mm256_loadu_si256(sum), _mm256_add_epi32(above, above)));
    const __m256i unsure = _mm256_andnot_si256(above, _mm256_cmpgt_epi32(found, low));
    within |= static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(unsure))) << c;
  }
#else
  for (unsigned c = 0; c < column_block; ++c) {
    sums[c] += product[c] > limit ? 2 : 0;
    within |= product[c] >= -limit && product[c] <= limit ? 1U << c : 0;
  }
#endif
  return within;
}

// For each row of x and each packed column: adds 2 to sums[group of the row][column] when their product is above the
// limit, and calls unsure(row, column) when it is between -limit and limit. `sums` has a row of all columns for each
// group.
template <class Unsure>
void count_above(std::span<const std::int16_t> x, std::span<const std::int16_t> packed, std::size_t width,
                 std::int32_t limit, std::span<const std::uint32_t> group_of, std::int32_t* sums,
                 const Unsure& unsure) {
  constexpr std::size_t tile = 10 * row_block;  // rows that stay in the first-level cache with a block of columns
  const std::size_t rows = group_of.size(), columns = packed.size() / width;
  for (std::size_t first = 0; first < rows; first += tile)
    for (std::size_t column = 0; column < columns; column += column_block) {
      const std::size_t end = std::min(first + tile, rows);
      std::size_t row = first;
      const auto count = [&]<std::size_t Rows>() {
        std::int32_t product[Rows][column_block];
        multiply_block(x.data() + row * width, packed.data() + column * width, width, product,
                       std::make_index_sequence<Rows>());
        for (std::size_t r = 0; r < Rows; ++r) {
          unsigned within = compare(product[r], limit, sums + group_of[row + r] * columns + column);
          for (; within != 0; within &= within - 1)
            unsure(row + r, column + static_cast<std::size_t>(std::countr_zero(within)));
        }
        row += Rows;
      };
      while (row + row_block <= end) count.template operator()<row_block>();
      while (row < end) count.template operator()<1>();
    }
}

}  // namespace headscope
