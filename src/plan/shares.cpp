#include "plan/shares.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "plan/deal.h"

namespace headscope {
namespace {

// What goes to one rank as a whole, and the arithmetic of its update.
struct Units {
  std::vector<DealtUnit> all;
  std::vector<double> polar_flops;  // 0: no matrix

  void add(std::int64_t elements, std::int64_t count = 1) {
    for (std::int64_t i = 0; i < count; ++i) {
      all.push_back({.elements = elements});
      polar_flops.push_back(0);
    }
  }
  void add_matrix(std::int64_t rows, std::int64_t columns, std::int64_t layer) {
    all.push_back({.elements = rows * columns, .layer = layer});
    polar_flops.push_back(polar_express_flops(rows, columns));
  }
};

void add_matrices(const DecoderConfig& c, std::int64_t layer, Units& units) {
  const std::int64_t q = c.query_rows(), kv = c.key_rows();
  if (q == c.d_model) {  // queries, keys, values and output are one matrix
    units.add_matrix(2 * q + 2 * kv, c.d_model, layer);
  } else {
    units.add_matrix(q + 2 * kv, c.d_model, layer);
    units.add_matrix(c.d_model, q, layer);
  }
  if (c.gated) units.add_matrix(c.d_ff, c.d_model, layer);
  units.add_matrix(c.d_ff, c.d_model, layer);
  units.add_matrix(c.d_model, c.d_ff, layer);
}

void add_others(const DecoderConfig& c, bool trains_qk_gain, Units& units) {
  const std::int64_t q = c.query_rows(), kv = c.key_rows();
  const std::int64_t parts = c.norm.kind == NormKind::layer ? 2 : 1, norms = c.norm.place == NormPlace::both ? 4 : 2;
  units.add(c.d_model, parts * (c.layers * norms + 1));
  if (c.qk_norm && trains_qk_gain) {
    units.add(c.gain_size(q), c.layers);
    units.add(c.gain_size(kv), c.layers);
  }
  if (c.bias.qkv) units.add(q + 2 * kv, c.layers);
  if (c.bias.output) units.add(c.d_model, c.layers);
  if (!c.bias.feed_forward) return;
  units.add(c.d_ff, c.layers * (c.gated ? 2 : 1));
  units.add(c.d_model, c.layers);
}

// Elements of each rank in what is cut by rows.
std::vector<std::int64_t> rows_of_ranks(const DecoderConfig& c, std::int64_t ranks) {
  std::vector<std::int64_t> elements(static_cast<std::size_t>(ranks));
  const std::int64_t width = c.d_model * (c.tied_head ? 1 : 2);
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    elements[static_cast<std::size_t>(rank)] =
        (first_row(c.vocabulary, rank + 1, ranks) - first_row(c.vocabulary, rank, ranks)) * width;
  return elements;
}

struct Rank {
  std::int64_t state = 0;
  double flops = 0;
};

}  // namespace

double polar_express_flops(std::int64_t rows, std::int64_t columns) {
  const auto n = static_cast<double>(std::min(rows, columns)), m = static_cast<double>(std::max(rows, columns));
  constexpr double symmetric = 5.0 / 8;
  return 3 * (1 + symmetric) * 2 * n * n * m + 11 * symmetric * 2 * n * n * n;
}

UpdateShares share_update(const DecoderConfig& model, bool trains_qk_gain, std::int64_t ranks) {
  Units units;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) add_matrices(model, layer, units);
  add_others(model, trains_qk_gain, units);
  const std::vector<std::int64_t> rows = rows_of_ranks(model, ranks);
  const Deal dealt = deal(std::move(units.all), model.layers, rows);
  std::vector<Rank> all(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) all[i].state = 2 * rows[i];
  UpdateShares shares{.ranks = ranks,
                      .each_elements = dealt.elements(),
                      .each_layer_elements = dealt.elements() - dealt.piece_elements.back(),
                      .layer_pieces = static_cast<std::int64_t>(dealt.layer_pieces()),
                      .most_own = std::ranges::max(dealt.own_elements)};
  for (std::size_t i = 0; i < dealt.units.size(); ++i) {
    Rank& owner = all[static_cast<std::size_t>(dealt.units[i].owner)];
    const double flops = units.polar_flops[i];
    owner.state += (flops > 0 ? 1 : 2) * dealt.units[i].elements;
    owner.flops += flops;
    shares.matrices += flops > 0 ? 1 : 0;
    shares.polar_flops += flops;
  }
  for (const Rank& rank : all) {
    shares.most_state = std::max(shares.most_state, rank.state);
    shares.most_polar_flops = std::max(shares.most_polar_flops, rank.flops);
    if (rank.flops == 0) ++shares.without_matrix;
  }
  return shares;
}

}  // namespace headscope
