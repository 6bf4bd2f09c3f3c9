// What each rank owns of an update, counted: what optim/shares.h makes of a decoder with its tensors. Both deal with
// plan/deal.h.
#pragma once

#include <cstdint>

#include "settings/decoder_config.h"

namespace headscope {

struct UpdateShares {
  std::int64_t ranks = 1;
  std::int64_t each_elements = 0;        // of the memory that ranks exchange, for each rank: as the one with most needs
  std::int64_t each_layer_elements = 0;  // of these, what may travel in the backward pass
  std::int64_t layer_pieces = 0;         // in which that travels
  std::int64_t most_own = 0;             // elements of the rank that owns most
  std::int64_t most_state = 0;      // numbers of optimizer state, of the rank that has most: 1 a matrix element, else 2
  std::int64_t matrices = 0;        // of Muon, in all
  std::int64_t without_matrix = 0;  // ranks that have none to orthogonalise
  double polar_flops = 0;           // Polar Express, in all
  double most_polar_flops = 0;      // of the rank that has most

  // Elements of the memory that is exchanged. A double: 2^20 ranks times the largest model are beyond 64 bits.
  [[nodiscard]] double padded_elements() const {
    return static_cast<double>(ranks) * static_cast<double>(each_elements);
  }
};

// trains_qk_gain: whether the gains of QK-Norm are trained.
UpdateShares share_update(const DecoderConfig& model, bool trains_qk_gain, std::int64_t ranks);

// Operations of Polar Express on a matrix of n x m, n <= m (optim/polar_express.cpp): three Gram matrices X·Xᵀ and
// three products P·X, each 2·n²·m, and eleven products of n x n, 2·n³. Of symmetric ones, four blocks of rows are
// computed up to the diagonal: 5/8.
double polar_express_flops(std::int64_t rows, std::int64_t columns);

}  // namespace headscope
