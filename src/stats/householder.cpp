#include "stats/householder.h"

#include <algorithm>

#include "core/error.h"

namespace headscope {
namespace {

constexpr double kNegligible = 1e-12;

// Rows are taken in blocks that stay in the second-level cache between the product X v and the update X -= 2 (X v) v^T:
// 256 rows of 128 doubles are 256 KiB.
constexpr Eigen::Index kBlockRows = 256;

template <class Matrix>
void reflect_rows(const Reflection& reflection, Matrix& x_nd) {
  HEADSCOPE_CHECK(x_nd.cols() == reflection.v.size(), "{} columns, {} dimensions", x_nd.cols(), reflection.v.size());
  if (reflection.identity) return;
  Eigen::VectorXd projection(std::min(kBlockRows, x_nd.rows()));
  for (Eigen::Index first = 0; first < x_nd.rows(); first += kBlockRows) {
    const Eigen::Index rows = std::min(kBlockRows, x_nd.rows() - first);
    auto block = x_nd.middleRows(first, rows);
    projection.head(rows).noalias() = 2 * (block * reflection.v);
    block.noalias() -= projection.head(rows) * reflection.v.transpose();
  }
}

}  // namespace

Reflection reflection_onto(const Eigen::Ref<const Eigen::VectorXd>& beta) {
  HEADSCOPE_CHECK(beta.size() >= 1, "no components");
  const Reflection identity{.v = Eigen::VectorXd::Zero(beta.size()), .identity = true};
  const double norm = beta.stableNorm();
  if (norm < kNegligible) return identity;
  Eigen::VectorXd v = beta / norm;
  // v[0] - 1 as -(1 - v[0]^2) / (1 + v[0]): the plain difference has no correct digit for a direction within 1e-8 of
  // e1.
  const double others = v.tail(v.size() - 1).squaredNorm();
  v[0] = v[0] > 0 ? -others / (1 + v[0]) : v[0] - 1;
  const double length = v.norm();
  if (length < kNegligible) return identity;
  return {.v = v / length, .identity = false};
}

void reflect(const Reflection& reflection, Eigen::Ref<Eigen::MatrixXd> x_nd) {
  reflect_rows(reflection, x_nd);
}

void reflect(const Reflection& reflection, Eigen::Ref<RowMajorMatrix> x_nd) {
  reflect_rows(reflection, x_nd);
}

}  // namespace headscope
