// Signs of many scalar products of rounded vectors, in whole numbers: exact, and twice as fast as float32.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
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

// The products of `Rows` rows with sixteen columns, compared with ±limit: adds 2 to sums[row][column] for each above,
// and calls unsure(row, column) for each within.
template <std::size_t Rows, class Unsure>
void compare_block(const std::int16_t* x, const std::int16_t* columns, std::size_t width, std::int32_t limit,
                   std::int32_t* const* sums, const Unsure& unsure) {
#ifdef __AVX2__
  __m256i product[Rows][2];
  for (auto& of_row : product) of_row[0] = of_row[1] = _mm256_setzero_si256();
  for (std::size_t i = 0; i < width; i += 2) {
    const auto* at = reinterpret_cast<const __m256i*>(columns + i * column_block);
    const __m256i left = _mm256_loadu_si256(at), right = _mm256_loadu_si256(at + 1);
    for (std::size_t r = 0; r < Rows; ++r) {
      const __m256i both = _mm256_castps_si256(_mm256_broadcast_ss(reinterpret_cast<const float*>(x + r * width + i)));
      product[r][0] = _mm256_add_epi32(product[r][0], _mm256_madd_epi16(both, left));
      product[r][1] = _mm256_add_epi32(product[r][1], _mm256_madd_epi16(both, right));
    }
  }
  // A copy: the sums themselves stay in registers as long as no loop below has a place among them as an index.
  __m256i sum_of[Rows][2];
  for (std::size_t r = 0; r < Rows; ++r) {
    _mm256_storeu_si256(&sum_of[r][0], product[r][0]);
    _mm256_storeu_si256(&sum_of[r][1], product[r][1]);
  }
  const __m256i high = _mm256_set1_epi32(limit), low = _mm256_set1_epi32(-limit - 1);
#pragma GCC unroll 1
  for (std::size_t r = 0; r < Rows; ++r)
    for (std::size_t half = 0; half < 2; ++half) {
      const __m256i found = sum_of[r][half], above = _mm256_cmpgt_epi32(found, high);
      auto* const sum = reinterpret_cast<__m256i*>(sums[r] + 8 * half);
      _mm256_storeu_si256(sum, _mm256_sub_epi32(_mm256_loadu_si256(sum), _mm256_add_epi32(above, above)));
      const __m256i within = _mm256_andnot_si256(above, _mm256_cmpgt_epi32(found, low));
      for (auto lanes = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(within))); lanes != 0;
           lanes &= lanes - 1)
        unsure(r, 8 * half + static_cast<std::size_t>(__builtin_ctz(lanes)));
    }
#else
  for (std::size_t r = 0; r < Rows; ++r)
    for (std::size_t c = 0; c < column_block; ++c) {
      std::int32_t product = 0;
      for (std::size_t i = 0; i < width; i += 2)
        for (std::size_t k = 0; k < 2; ++k)
          product += std::int32_t{x[r * width + i + k]} * columns[i * column_block + 2 * c + k];
      if (product > limit)
        sums[r][c] += 2;
      else if (product >= -limit)
        unsure(r, c);
    }
#endif
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
      const auto compare = [&]<std::size_t Rows>() {
        std::int32_t* of_rows[Rows];
        for (std::size_t r = 0; r < Rows; ++r) of_rows[r] = sums + group_of[row + r] * columns + column;
        compare_block<Rows>(x.data() + row * width, packed.data() + column * width, width, limit, of_rows,
                            [&](std::size_t r, std::size_t c) { unsure(row + r, column + c); });
        row += Rows;
      };
      while (row + row_block <= end) compare.template operator()<row_block>();
      while (row < end) compare.template operator()<1>();
    }
}

}  // namespace headscope
