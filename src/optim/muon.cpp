#include "optim/muon.h"

#include <map>

#include "core/error.h"
#include "optim/matrix_batches.h"

namespace headscope {
namespace {

// The gradient of a whole matrix, short side first.
at::Tensor gradient_of(const LayerMatrix& matrix, bool transposed) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& part : matrix.parts) {
    HEADSCOPE_CHECK(part.grad().defined(), "{} has no gradient", matrix.name);
    gradients.push_back(part.grad());
  }
  const at::Tensor whole = gradients.size() == 1 ? gradients.front() : at::cat(gradients);
  return transposed ? whole.t() : whole;
}

}  // namespace

Muon::Muon(std::vector<LayerMatrix> matrices, MuonOptions options) : options_(options) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> group_of;
  for (LayerMatrix& matrix : matrices) {
    const std::int64_t rows = rows_of(matrix), columns = matrix.parts.front().size(1);
    const auto [place, is_new] =
        group_of.try_emplace({std::min(rows, columns), std::max(rows, columns)}, groups_.size());
    if (is_new) groups_.emplace_back();
    Group& group = groups_[place->second];
    group.transposed.push_back(rows > columns);
    group.matrices.push_back(std::move(matrix));
  }
  for (const auto& [shape, index] : group_of) {
    Group& group = groups_[index];
    const auto count = static_cast<std::int64_t>(group.matrices.size());
    group.momentum = at::zeros({count, shape.first, shape.second}, group.matrices.front().parts.front().options());
  }
}

void Muon::step(double lr) {
  const at::NoGradGuard no_gradients;
  for (Group& group : groups_) step(group, lr);
}

void Muon::step(Group& group, double lr) const {
  std::vector<at::Tensor> gradients;
  for (std::size_t i = 0; i < group.matrices.size(); ++i)
    gradients.push_back(gradient_of(group.matrices[i], group.transposed[i]));
  const at::Tensor gradient = at::stack(gradients);
  group.momentum.lerp_(gradient, 1 - options_.momentum);
  const at::Tensor update = polar_express(gradient.lerp(group.momentum, options_.momentum));

  for (std::size_t i = 0; i < group.matrices.size(); ++i) {
    const LayerMatrix& matrix = group.matrices[i];
    const at::Tensor whole =
        group.transposed[i] ? update[static_cast<std::int64_t>(i)].t() : update[static_cast<std::int64_t>(i)];
    const double scale =
        std::sqrt(std::max(1.0, static_cast<double>(whole.size(0)) / static_cast<double>(whole.size(1))));
    std::int64_t row = 0;
    for (at::Tensor part : matrix.parts) {
      part.add_(whole.narrow(0, row, part.size(0)), -lr * scale);
      row += part.size(0);
    }
  }
}

NamedTensors Muon::state() const {
  NamedTensors state;
  for (const Group& group : groups_)
    for (std::size_t i = 0; i < group.matrices.size(); ++i)
      state.emplace_back("muon.momentum." + group.matrices[i].name, group.momentum[static_cast<std::int64_t>(i)]);
  return state;
}

}  // namespace headscope
