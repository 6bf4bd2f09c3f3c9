// How the parameters are shared out among ranks: each is updated by one of them, its owner, and an embedding by all of
// them, by rows. One rank owns everything.
//
// An update on several ranks: every rank adds up the gradients of what it owns (add_gradients), updates that, and gives
// the new weights to the others (spread_weights). Gradients travel in pieces: those of some layers while the backward
// pass is at work on the layers below (layer_done).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/decoder.h"
#include "plan/deal.h"
#include "ranks/ranks.h"

namespace headscope {

// A parameter, or rows of it, that one rank owns.
struct Share {
  std::string name;  // of the parameter
  ParameterKind kind = ParameterKind::gain;
  at::Tensor parameter;
  std::int64_t first_row = 0, rows = 0;
  int owner = 0;
  std::size_t piece = 0;   // that it travels in
  std::int64_t begin = 0;  // elements before it in what its owner has of the piece
  // What this rank updates, with the gradient to update it with; undefined where another owns it. The parameter itself,
  // or another tensor of the same memory.
  at::Tensor own = {};

  [[nodiscard]] bool is_whole() const { return rows == parameter.size(0); }
  [[nodiscard]] at::Tensor rows_of(const at::Tensor& of_parameter) const {
    return is_whole() ? of_parameter : of_parameter.narrow(0, first_row, rows);
  }
  [[nodiscard]] std::int64_t elements() const { return parameter.numel() / parameter.size(0) * rows; }
};

// Whose shares. exchanged: a parameter's gradient is that of this rank's forward steps, and the gradient of what it
// owns the sum over all ranks.
struct Sharing {
  int rank = 0, size = 1;
  bool exchanged = false;
  std::int64_t least_piece = usual_piece;
};

class Shares {
 public:
  // What the rank owns of the trained parameters, which are shared, not copied.
  Shares(const Decoder& model, const Sharing& sharing);

  [[nodiscard]] const Sharing& sharing() const { return sharing_; }
  // What this rank owns: the layers' matrices, each whole, and everything else.
  [[nodiscard]] const std::vector<LayerMatrix>& matrices() const { return own_matrices_; }
  [[nodiscard]] std::vector<Share> others() const;

  // From here on every parameter has a gradient that stays where it is. That of a parameter which one rank owns as a
  // whole lies in the memory that is sent. Does nothing where gradients are not exchanged.
  void keep_gradients();

  // After every forward step of this rank. The gradients become those of what it owns, summed over ranks, after the
  // last one. In order: forward step i is that of rank i mod ranks, and the sum is that of one rank that adds one
  // forward step after another, bit for bit.
  void add_gradients(const Ranks& ranks, bool is_last);
  // In the backward pass of such a forward step: the matrices of this layer and of all above it have their gradients. A
  // piece that is whole begins to travel; add_gradients() waits for it.
  void layer_done(const Ranks& ranks, bool is_last, std::int64_t layer);
  // Whether a piece is whole with this layer.
  [[nodiscard]] bool ends_piece(std::int64_t layer) const;
  // Elements of the memory that ranks exchange, of all of them.
  [[nodiscard]] std::int64_t exchanged_elements() const;

  // Norms of the gradients: one of each parameter, of an embedding one for each row, which ranks can compute apart.
  // Those that this rank does not own are 0.
  [[nodiscard]] at::Tensor norms() const;
  // Scales the own gradients so that the norm of all together is at most `limit`, and returns that before. A norm that
  // is not finite is returned and nothing is scaled. norms: those of all ranks, added.
  [[nodiscard]] double clip(const at::Tensor& norms, double limit) const;
  // The parameter whose gradient is largest.
  [[nodiscard]] std::string largest(const at::Tensor& norms) const;

  // The parameters of every rank become those of their owners. In three steps, of which the first and the last are work
  // of this rank alone.
  void spread_weights(const Ranks& ranks);
  void pack_weights();
  void exchange_weights(const Ranks& ranks) const;
  void unpack_weights() const;

  // Of a tensor of an optimizer's state that is named after a parameter: the share, where that has some of the rows.
  [[nodiscard]] const Share* rows_behind(std::string_view state, const at::Tensor& value) const;

 private:
  struct Piece {
    std::int64_t first_layer = -1;  // whose matrices are the last to be done; -1: what the end of the pass gives
    at::Tensor outgoing = {};       // gradients, or weights, by the rank that owns them, [ranks, elements]
    at::Tensor sum = {};            // of gradients, for this rank, [elements]
    Ranks::Begun begun = {};
  };

  void assign(const Decoder& model);
  void add_rows(const Share& whole, std::vector<std::int64_t>& elements);
  void pack_gradients(std::size_t piece);
  void begin(std::size_t piece, const Ranks& ranks);
  void finish(Piece& piece, const Ranks& ranks);
  // Whether ranks exchange gradients after this forward step.
  [[nodiscard]] bool exchanges(const Ranks& ranks, bool is_last) const {
    return sharing_.exchanged && (is_last || ranks.ordered());
  }
  [[nodiscard]] bool is_own(const Share& share) const { return share.owner == sharing_.rank; }
  [[nodiscard]] std::vector<at::Tensor> norms_by_parameter(const at::Tensor& norms) const;
  // The place of a share in what one rank has of its piece.
  [[nodiscard]] static at::Tensor place_of(const Share& share, const at::Tensor& memory);
  [[nodiscard]] at::Tensor outgoing_of(const Share& share) const {
    return place_of(share, pieces_[share.piece].outgoing[share.owner]);
  }

  Sharing sharing_;
  std::vector<Share> shares_;
  std::vector<LayerMatrix> own_matrices_;
  std::vector<Piece> pieces_;  // where gradients are exchanged; in the order in which they travel
  bool kept_ = false;
};

}  // namespace headscope
