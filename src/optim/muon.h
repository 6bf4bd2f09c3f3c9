// Muon: momentum whose update is orthogonalised (DESIGN of the study: momentum 0.95, Nesterov by interpolation, update
// times sqrt(max(1, rows/columns)), no weight decay).
#pragma once

#include <vector>

#include "model/decoder.h"
#include "optim/polar_express.h"
#include "settings/train_options.h"

namespace headscope {

class Muon {
 public:
  Muon(std::vector<LayerMatrix> matrices, MuonOptions options);

  // One update from the gradients of the parts.
  void step(double lr);

  // The momentum of each matrix, by name: what a checkpoint holds. They share memory with this object.
  [[nodiscard]] NamedTensors state() const;

 private:
  // Matrices of one shape, or of its transpose: [matrices, short side, long side]. A GPU orthogonalises them at once.
  struct Group {
    std::vector<LayerMatrix> matrices;
    std::vector<bool> transposed;
    at::Tensor momentum;
  };
  void step(Group& group, double lr) const;
  void step(Group& group, std::int64_t first, std::int64_t count, double lr) const;

  MuonOptions options_;
  std::vector<Group> groups_;
};

}  // namespace headscope
