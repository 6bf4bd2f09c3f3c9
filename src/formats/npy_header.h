// The header of an array in a .npy file: a Python dictionary that says type, order and shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tensor.h"

namespace headscope {

struct NpyHeader {
  TensorType type = TensorType::f32;
  bool big_endian = false;
  bool fortran_order = false;  // the first index runs fastest
  std::vector<std::int64_t> shape;
};

// What stands before the dictionary: the magic bytes, a version, the length of the dictionary.
inline constexpr std::size_t npy_shortest_preamble = 10, npy_longest_preamble = 12;

struct NpyPreamble {
  std::size_t size = 0;    // 10 or 12 bytes
  std::size_t length = 0;  // of the dictionary
};

// `start` holds the first npy_shortest_preamble bytes. Nothing when the version has a longer preamble and `start` does
// not hold it. All functions throw Error(Fault::input); `where` names file and array.
std::optional<NpyPreamble> parse_npy_preamble(std::string_view start, const std::string& where);
NpyHeader parse_npy_dictionary(std::string_view text, const std::string& where);

// Preamble and dictionary of version 1, padded so that the values start at a multiple of 64.
std::string npy_header_text(TensorType type, const std::vector<std::int64_t>& shape);

}  // namespace headscope
