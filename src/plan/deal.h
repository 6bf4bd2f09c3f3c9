// How the parameters of a model are dealt out among the ranks that train it: each is updated by one of them, its owner,
// and its gradient travels there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headscope {

// Memory is cut at multiples of so many elements: kernels read 16 bytes at once, and caches have lines of 128.
constexpr std::int64_t alignment = 64;
constexpr std::int64_t aligned(std::int64_t elements) {
  return (elements + alignment - 1) / alignment * alignment;
}

// Elements of a piece at least: 32 MiB take longer to travel than to begin.
constexpr std::int64_t usual_piece = std::int64_t{1} << 23;

// The first of `rows` rows that a rank owns of a parameter that is cut by rows.
std::int64_t first_row(std::int64_t rows, std::int64_t rank, std::int64_t ranks);

// What goes to one rank as a whole: a matrix of a layer, or another parameter.
struct DealtUnit {
  std::int64_t elements = 0;
  std::int64_t layer = -1;  // of a matrix: it may travel when the backward pass has left this layer
  // The deal:
  std::int64_t owner = 0;
  std::size_t piece = 0;
  std::int64_t begin = 0;  // elements before it in what its owner has of the piece
};

struct Deal {
  std::vector<DealtUnit> units = {};            // in the order in which they came
  std::vector<std::int64_t> own_elements = {};  // of each rank, in all pieces
  // What each rank has of each piece, as much as the rank that has most. Pieces are in the order in which they travel:
  // those of the uppermost layers first, and last what the end of the backward pass gives.
  std::vector<std::int64_t> piece_elements = {};

  [[nodiscard]] std::size_t layer_pieces() const { return piece_elements.size() - 1; }
  // Of all pieces, of one rank.
  [[nodiscard]] std::int64_t elements() const;
};

// Which of so many pieces of layers has a layer; layers are cut evenly.
std::size_t piece_of_layer(std::int64_t layer, std::int64_t layers, std::size_t pieces);

// The largest units first, each to the rank that has least of its piece. rows: the elements of each rank in parameters
// that are cut by rows. Matrices travel in pieces of `least_piece` elements or more, on average. What the ranks own of
// a piece is padded to one size: there are as many pieces as add at most a tenth to the traffic of a single one.
Deal deal(std::vector<DealtUnit> units, std::int64_t layers, const std::vector<std::int64_t>& rows,
          std::int64_t least_piece = usual_piece);

}  // namespace headscope
