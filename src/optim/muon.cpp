#include "optim/muon.h"

#include <array>
#include <map>

#include "core/error.h"

namespace headscope {
namespace {

std::int64_t rows_of(const LayerMatrix& matrix) {
  std::int64_t rows = 0;
  for (const at::Tensor& part : matrix.parts) rows += part.size(0);
  return rows;
}

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

// X <- a X + (b A + c A²) X with A = X Xᵀ. The published coefficients for five steps.
struct Coefficients {
  double a, b, c;
};
constexpr std::array<Coefficients, 5> coefficients = {{
    {8.156554524902461, -22.48329292557795, 15.878769915207462},
    {4.042929935166739, -2.808917465908714, 0.5000178451051316},
    {3.8916678022926607, -2.772484153217685, 0.5060648178503393},
    {3.285753657755655, -2.3681294933425376, 0.46449024233003106},
    {2.3465413258596377, -1.7097828382687081, 0.42323551169305323},
}};
// The norm is divided by slightly more than itself, so that rounding cannot push a singular value past 1.
constexpr double norm_margin = 1.01, norm_eps = 1e-7;

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

at::Tensor polar_express(const at::Tensor& x) {
  const bool tall = x.size(-2) > x.size(-1);
  const at::ScalarType type = x.is_cuda() ? at::kBFloat16 : x.scalar_type();
  const at::Tensor wide = tall ? x.mT() : x;
  const at::Tensor norm = at::linalg_matrix_norm(wide, "fro", {-2, -1}, /*keepdim=*/true);
  at::Tensor y = (wide / (norm * norm_margin + norm_eps)).to(type).flatten(0, -3);  // [matrices, short, long]
  for (const Coefficients& k : coefficients) {
    const at::Tensor gram = at::bmm(y, y.mT());
    const at::Tensor inner = at::baddbmm(gram, gram, gram, k.b, k.c);
    y = at::baddbmm(y, inner, y, k.a, 1);
  }
  if (tall) y = y.mT();
  return y.view_as(x);
}

}  // namespace headscope
