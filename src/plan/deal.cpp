#include "plan/deal.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>

namespace headscope {
namespace {

// Rows are cut at multiples of so many: AdamW's vectorised loop then has its last, partial vector where it has it in
// the whole parameter.
constexpr std::int64_t row_block = 16;

// Ranks by what they have of a piece. Of those that have equally little, the one behind the last owner is next, so that
// none gets the remainder of every piece.
class Piece {
 public:
  Piece(std::vector<std::int64_t> loads, std::int64_t first) : loads_(std::move(loads)), first_(first) {
    std::vector<Place> places;
    for (std::int64_t turn = 0; turn < ranks(); ++turn) places.emplace_back(loads_[rank_at(turn)], turn);
    least_ = Least(std::greater<>(), std::move(places));
  }

  void give(DealtUnit& unit) {
    const std::int64_t turn = least_.top().second;
    least_.pop();
    std::int64_t& load = loads_[rank_at(turn)];
    unit.owner = static_cast<std::int64_t>(rank_at(turn));
    unit.begin = aligned(load);  // the parts of a matrix lie one behind the other
    load = unit.begin + unit.elements;
    least_.emplace(load, turn);
  }

  [[nodiscard]] const std::vector<std::int64_t>& loads() const { return loads_; }

 private:
  using Place = std::pair<std::int64_t, std::int64_t>;  // elements, turn
  using Least = std::priority_queue<Place, std::vector<Place>, std::greater<>>;

  [[nodiscard]] std::int64_t ranks() const { return static_cast<std::int64_t>(loads_.size()); }
  [[nodiscard]] std::size_t rank_at(std::int64_t turn) const {
    return static_cast<std::size_t>((first_ + turn) % ranks());
  }

  std::vector<std::int64_t> loads_;
  std::int64_t first_;
  Least least_;
};

// `order`: of the units, the largest first.
Deal dealt(std::vector<DealtUnit> units, const std::vector<std::size_t>& order, std::int64_t layers,
           std::size_t of_layers, const std::vector<std::int64_t>& rows) {
  Deal deal{.units = std::move(units), .own_elements = std::vector<std::int64_t>(rows.size(), 0)};
  std::int64_t next = 0;
  for (std::size_t index = 0; index <= of_layers; ++index) {
    Piece piece(index == of_layers ? rows : std::vector<std::int64_t>(rows.size(), 0), next);
    for (const std::size_t i : order) {
      DealtUnit& unit = deal.units[i];
      const bool of_layer = unit.layer >= 0 && of_layers > 0;
      if ((of_layer ? piece_of_layer(unit.layer, layers, of_layers) : of_layers) != index) continue;
      unit.piece = index;
      piece.give(unit);
      next = unit.owner + 1;
    }
    for (std::size_t rank = 0; rank < rows.size(); ++rank) deal.own_elements[rank] += piece.loads()[rank];
    deal.piece_elements.push_back(aligned(std::ranges::max(piece.loads())));
  }
  return deal;
}

// More pieces than this leave some ranks without a matrix of each: that costs more than a tenth.
std::int64_t most_pieces(const std::vector<DealtUnit>& units, std::int64_t layers, std::int64_t ranks,
                         std::int64_t least_piece) {
  std::int64_t matrices = 0, elements = 0;
  for (const DealtUnit& unit : units) {
    if (unit.layer < 0) continue;
    ++matrices;
    elements += unit.elements;
  }
  constexpr std::int64_t enough = 16;  // the last one alone waits for the end of the backward pass
  return std::min({enough, layers, elements / least_piece, (matrices + ranks - 1) / ranks});
}

}  // namespace

std::int64_t first_row(std::int64_t rows, std::int64_t rank, std::int64_t ranks) {
  const std::int64_t blocks = (rows + row_block - 1) / row_block;
  return std::min(rows, blocks * rank / ranks * row_block);
}

std::int64_t Deal::elements() const {
  return std::accumulate(piece_elements.begin(), piece_elements.end(), std::int64_t{0});
}

std::size_t piece_of_layer(std::int64_t layer, std::int64_t layers, std::size_t pieces) {
  return static_cast<std::size_t>((layers - 1 - layer) * static_cast<std::int64_t>(pieces) / layers);
}

Deal deal(std::vector<DealtUnit> units, std::int64_t layers, const std::vector<std::int64_t>& rows,
          std::int64_t least_piece) {
  std::vector<std::size_t> order(units.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return units[i].elements; });
  const auto ranks = static_cast<std::int64_t>(rows.size());
  const Deal together = dealt(units, order, layers, 0, rows);
  for (std::int64_t pieces = most_pieces(units, layers, ranks, least_piece); pieces > 1; --pieces) {
    Deal apart = dealt(units, order, layers, static_cast<std::size_t>(pieces), rows);
    if (10 * apart.elements() <= 11 * together.elements()) return apart;
  }
  return together;
}

}  // namespace headscope
