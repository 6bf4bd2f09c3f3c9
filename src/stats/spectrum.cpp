#include "stats/spectrum.h"

#include <Eigen/Eigenvalues>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace headscope {

std::vector<double> singular_values_of_gram(std::span<const double> gram, std::int64_t d) {
  HEADSCOPE_CHECK(static_cast<std::int64_t>(gram.size()) == d * d, "{} values, d {}", gram.size(), d);
  const Eigen::Map<const Eigen::MatrixXd> matrix(gram.data(), d, d);
  if (!matrix.allFinite()) return std::vector<double>(static_cast<std::size_t>(d), std::nan(""));
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(matrix, Eigen::EigenvaluesOnly);
  std::vector<double> values;
  for (Eigen::Index i = d - 1; i >= 0; --i)
    values.push_back(std::sqrt(std::max(0.0, solver.eigenvalues()[i])));  // rounding leaves tiny negative ones
  return values;
}

double participation_ratio(std::span<const double> singular_values) {
  double sum = 0, squares = 0;
  for (const double s : singular_values) {
    sum += s;
    squares += s * s;
  }
  return squares == 0 ? std::numeric_limits<double>::quiet_NaN() : sum * sum / squares;
}

}  // namespace headscope
