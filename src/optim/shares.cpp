#include "optim/shares.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/error.h"
#include "optim/matrix_batches.h"

namespace headscope {
namespace {

bool is_split(ParameterKind kind) {
  return kind == ParameterKind::embedding;
}

}  // namespace

Shares::Shares(const Decoder& model, const Sharing& sharing) : sharing_(sharing) {
  assign(model);
  std::map<const void*, at::Tensor> own_of;  // by the memory of a parameter of a matrix
  for (Share& share : shares_) {
    if (!is_own(share)) continue;
    share.own = share.is_whole() && !sharing_.exchanged ? share.parameter : share.rows_of(share.parameter.detach());
    if (share.kind == ParameterKind::matrix) own_of[share.parameter.const_data_ptr()] = share.own;
  }
  for (LayerMatrix& matrix : layer_matrices(model)) {
    if (!own_of.contains(matrix.parts.front().const_data_ptr())) continue;
    for (at::Tensor& part : matrix.parts) part = own_of.at(part.const_data_ptr());
    own_matrices_.push_back(matrix);
  }
}

std::vector<Share> Shares::others() const {
  std::vector<Share> others;
  for (const Share& share : shares_)
    if (is_own(share) && share.kind != ParameterKind::matrix) others.push_back(share);
  return others;
}

// Embeddings are cut by rows; everything else goes to one rank as a whole, the parts of a matrix together.
void Shares::assign(const Decoder& model) {
  std::map<const void*, std::size_t> unit_of;  // by the memory of a parameter of a matrix
  std::vector<DealtUnit> units;
  for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
    for (const LayerMatrix& matrix : layer_matrices(model, layer)) {
      for (const at::Tensor& part : matrix.parts) unit_of[part.const_data_ptr()] = units.size();
      units.push_back({.layer = static_cast<std::int64_t>(layer)});
    }
  }
  std::vector<std::int64_t> rows(static_cast<std::size_t>(sharing_.size), 0);
  std::vector<std::pair<std::size_t, std::size_t>> whole_shares;  // share, unit
  for_each_parameter(model, [&](const std::string& name, ParameterKind kind, const at::Tensor& value) {
    if (!value.requires_grad()) return;
    const Share whole{name, kind, value, 0, value.size(0)};
    if (is_split(kind)) return add_rows(whole, rows);
    const auto known = unit_of.find(value.const_data_ptr());
    const std::size_t unit = known != unit_of.end() ? known->second : units.size();
    if (unit == units.size()) units.emplace_back();
    units[unit].elements += whole.elements();
    whole_shares.emplace_back(shares_.size(), unit);
    shares_.push_back(whole);
  });
  const auto layers = static_cast<std::int64_t>(model.layers.size());
  Deal dealt = deal(std::move(units), layers, rows, sharing_.least_piece);
  for (Share& share : shares_) share.piece = dealt.layer_pieces();  // those that are rows
  for (const auto& [index, unit_index] : whole_shares) {
    DealtUnit& unit = dealt.units[unit_index];
    Share& share = shares_[index];
    share.piece = unit.piece;
    share.owner = static_cast<int>(unit.owner);
    share.begin = std::exchange(unit.begin, unit.begin + share.elements());
  }
  if (!sharing_.exchanged) return;
  const auto type = model.embedding.options().requires_grad(false);
  for (const std::int64_t elements : dealt.piece_elements)
    pieces_.push_back({.outgoing = at::zeros({sharing_.size, elements}, type)});
  for (std::int64_t layer = layers - 1; layer >= 0 && dealt.layer_pieces() > 0; --layer)
    pieces_[piece_of_layer(layer, layers, dealt.layer_pieces())].first_layer = layer;
}

// The rows of each rank.
void Shares::add_rows(const Share& whole, std::vector<std::int64_t>& elements) {
  for (int owner = 0; owner < sharing_.size; ++owner) {
    Share part = whole;
    part.owner = owner;
    part.first_row = first_row(whole.rows, owner, sharing_.size);
    part.rows = first_row(whole.rows, owner + 1, sharing_.size) - part.first_row;
    if (part.rows == 0) continue;
    std::int64_t& own = elements[static_cast<std::size_t>(owner)];
    part.begin = std::exchange(own, own + part.elements());
    shares_.push_back(part);
  }
}

at::Tensor Shares::place_of(const Share& share, const at::Tensor& memory) {
  return memory.narrow(0, share.begin, share.elements()).view_as(share.rows_of(share.parameter));
}

void Shares::keep_gradients() {
  if (!sharing_.exchanged) return;
  kept_ = true;
  for (const Share& share : shares_) {
    at::Tensor parameter = share.parameter;
    if (share.is_whole())
      parameter.mutable_grad() = outgoing_of(share);
    else if (share.first_row == 0)
      parameter.mutable_grad() = at::zeros_like(parameter, at::MemoryFormat::Contiguous).detach();
  }
}

void Shares::pack_gradients(std::size_t piece) {
  for (const Share& share : shares_)
    if (share.piece == piece && !(kept_ && share.is_whole()))
      outgoing_of(share).copy_(share.rows_of(share.parameter.grad()));
  if (kept_) return;
  for (const Share& share : shares_)
    if (share.piece == piece) at::Tensor(share.parameter).mutable_grad().reset();
}

void Shares::begin(std::size_t piece, const Ranks& ranks) {
  const at::NoGradGuard no_gradients;
  pack_gradients(piece);
  const at::Tensor& outgoing = pieces_[piece].outgoing;
  pieces_[piece].begun = ranks.ordered() ? ranks.begin_all_to_all(outgoing) : ranks.begin_reduce_scatter(outgoing);
}

void Shares::finish(Piece& piece, const Ranks& ranks) {
  const at::Tensor incoming = ranks.finish(std::exchange(piece.begun, {}));
  if (!ranks.ordered()) {
    piece.sum = incoming;
    return;
  }
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (piece.sum.defined())
      piece.sum.add_(incoming[rank]);
    else
      piece.sum = incoming[rank].clone();
  }
}

bool Shares::ends_piece(std::int64_t layer) const {
  return std::ranges::find(pieces_, layer, &Piece::first_layer) != pieces_.end();
}

void Shares::layer_done(const Ranks& ranks, bool is_last, std::int64_t layer) {
  if (!exchanges(ranks, is_last)) return;
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece)
    if (pieces_[piece].first_layer == layer) begin(piece, ranks);
}

void Shares::add_gradients(const Ranks& ranks, bool is_last) {
  if (!exchanges(ranks, is_last)) return;
  const at::NoGradGuard no_gradients;
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece)
    if (!pieces_[piece].begun) begin(piece, ranks);
  for (Piece& piece : pieces_) finish(piece, ranks);
  if (!is_last) return;
  for (Share& share : shares_) {
    if (!is_own(share)) continue;
    const at::Tensor sum = place_of(share, pieces_[share.piece].sum);
    if (kept_)
      share.own.mutable_grad().copy_(sum);
    else
      share.own.mutable_grad() = sum;
  }
  for (Piece& piece : pieces_) piece.sum.reset();
}

std::int64_t Shares::exchanged_elements() const {
  std::int64_t elements = 0;
  for (const Piece& piece : pieces_) elements += piece.outgoing.numel();
  return elements;
}

at::Tensor Shares::norms() const {
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> norms;
  for (const Share& share : shares_) {
    if (!is_own(share))
      norms.push_back(
          at::zeros({is_split(share.kind) ? share.rows : 1}, share.parameter.options().requires_grad(false)));
    else if (is_split(share.kind))
      norms.push_back(at::linalg_vector_norm(share.own.grad(), 2, 1));
    else
      norms.push_back(at::linalg_vector_norm(share.own.grad()).view(1));
  }
  return at::cat(norms);
}

// Of an embedding, the rows' norms of all shares are one behind the other.
std::vector<at::Tensor> Shares::norms_by_parameter(const at::Tensor& norms) const {
  std::vector<at::Tensor> of_parameters;
  std::int64_t begin = 0;
  for (const Share& share : shares_) {
    if (!is_split(share.kind)) {
      of_parameters.push_back(norms[begin++]);
    } else if (share.first_row == 0) {
      of_parameters.push_back(at::linalg_vector_norm(norms.narrow(0, begin, share.parameter.size(0))));
      begin += share.parameter.size(0);
    }
  }
  return of_parameters;
}

double Shares::clip(const at::Tensor& norms, double limit) const {
  const at::NoGradGuard no_gradients;
  const double norm = at::linalg_vector_norm(at::stack(norms_by_parameter(norms))).item<double>();
  std::vector<at::Tensor> gradients;
  for (const Share& share : shares_)
    if (is_own(share)) gradients.push_back(share.own.grad());
  if (std::isfinite(norm) && norm > limit && !gradients.empty()) at::_foreach_mul_(gradients, limit / norm);
  return norm;
}

std::string Shares::largest(const at::Tensor& norms) const {
  const std::vector<at::Tensor> of_parameters = norms_by_parameter(norms);
  std::string largest;
  double largest_norm = -1;
  std::size_t parameter = 0;
  for (const Share& share : shares_) {
    if (share.first_row != 0) continue;
    double norm = of_parameters[parameter++].item<double>();
    if (std::isnan(norm)) norm = std::numeric_limits<double>::infinity();
    if (norm <= largest_norm) continue;
    largest_norm = norm;
    largest = share.name;
  }
  return largest;
}

void Shares::spread_weights(const Ranks& ranks) {
  if (!sharing_.exchanged) return;
  pack_weights();
  exchange_weights(ranks);
  unpack_weights();
}

void Shares::pack_weights() {
  const at::NoGradGuard no_gradients;
  for (const Share& share : shares_)
    if (is_own(share)) outgoing_of(share).copy_(share.own);
}

void Shares::exchange_weights(const Ranks& ranks) const {
  for (const Piece& piece : pieces_) ranks.all_gather_rows(piece.outgoing);
}

void Shares::unpack_weights() const {
  const at::NoGradGuard no_gradients;
  for (const Share& share : shares_)
    if (!is_own(share)) share.rows_of(share.parameter.detach()).copy_(outgoing_of(share));
}

const Share* Shares::rows_behind(std::string_view state, const at::Tensor& value) const {
  for (const Share& share : shares_)
    if (is_own(share) && !share.is_whole() && state.ends_with("." + share.name) && value.sizes() == share.own.sizes())
      return &share;
  return nullptr;
}

}  // namespace headscope
