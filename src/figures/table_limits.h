// What figures accept of the numbers in a table. A table may come from anywhere; a number far beyond those of any model
// would ask for all memory, or for an image that no program can open. Errors are Error(Fault::input) with the column
// and the value; the caller knows the file.
#pragma once

#include <cstdint>
#include <string_view>

#include "formats/table.h"

namespace headscope {

constexpr std::int64_t most_layers = 4096;
constexpr std::int64_t most_heads = 1024;            // of a layer
constexpr std::int64_t most_tiles = 65536;           // layers times heads of a map
constexpr std::int64_t most_dimensions = 4096;       // of a head
constexpr std::int64_t most_bucket = 1'000'000'000;  // buckets have any numbers, also positions in a text
constexpr std::size_t most_curve_points = 1 << 22;   // layers times places on the x axis
constexpr std::size_t most_roles = 256;              // in a legend

// All of them from 0 to most - 1.
void check_integers(const Integers& values, std::string_view column, std::int64_t most);

// The columns layer and q_head.
void check_heads(const Table& table);

// The rectangle of layers and heads of a map.
void check_tiles(std::int64_t layers, std::int64_t heads);

}  // namespace headscope
