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
  // A CPU takes one matrix after another: it is no slower, and the result does not depend on what is beside a matrix,
  // so that ranks may share them out.
  const auto count = static_cast<std::int64_t>(group.matrices.size());
  const std::int64_t at_once = group.momentum.is_cuda() ? count : 1;
  for (std::int64_t first = 0; first < count; first += at_once) step(group, first, at_once, lr);
}

void Muon::step(Group& group, std::int64_t first, std::int64_t count, double lr) const {
  std::vector<at::Tensor> gradients;
  for (std::int64_t i = first; i < first + count; ++i)
    gradients.push_back(
        gradient_of(group.matrices[static_cast<std::size_t>(i)], group.transposed[static_cast<std::size_t>(i)]));
  const at::Tensor gradient = at::stack(gradients);
  at::Tensor momentum = group.momentum.narrow(0, first, count);
  momentum.lerp_(gradient, 1 - options_.momentum);
  const at::Tensor updates = polar_express(gradient.lerp(momentum, options_.momentum));

  for (std::int64_t i = 0; i < count; ++i) {
    const auto place = static_cast<std::size_t>(first + i);
    const at::Tensor whole = group.transposed[place] ? updates[i].t() : updates[i];
    const double scale =
        std::sqrt(std::max(1.0, static_cast<double>(whole.size(0)) / static_cast<double>(whole.size(1))));
    std::int64_t row = 0;
    for (at::Tensor part : group.matrices[place].parts) {
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
