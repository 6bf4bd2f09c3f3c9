#include "stats/spectrum.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <cmath>

#include "core/error.h"
#include "core/missing.h"

namespace headscope {
namespace {

double sum_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

double sum_of_squares(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

double largest(std::span<const double> values) {
  double found = 0;
  for (const double value : values) found = std::isnan(value) ? value : std::max(found, value);
  return found;
}

// Values over `unit`, so that squares neither overflow nor vanish. Empty when `unit` is 0, NaN or infinite.
std::vector<double> normalised(std::span<const double> values, double unit) {
  std::vector<double> shares;
  if (!(unit > 0) || std::isinf(unit)) return shares;
  for (const double value : values) shares.push_back(value / unit);
  return shares;
}

// The roots of the eigenvalues, largest first.
std::vector<double> roots_of_eigenvalues(const Eigen::MatrixXd& matrix) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(matrix, Eigen::EigenvaluesOnly);
  std::vector<double> values;
  for (Eigen::Index i = matrix.rows() - 1; i >= 0; --i)
    values.push_back(std::sqrt(std::max(0.0, solver.eigenvalues()[i])));  // rounding leaves tiny negative ones
  return values;
}

}  // namespace

std::vector<double> singular_values_of_gram(std::span<const double> gram, std::int64_t d) {
  HEADSCOPE_CHECK(static_cast<std::int64_t>(gram.size()) == d * d, "{} values, d {}", gram.size(), d);
  const Eigen::Map<const Eigen::MatrixXd> matrix(gram.data(), d, d);
  if (!matrix.allFinite()) return std::vector<double>(static_cast<std::size_t>(d), missing);
  return roots_of_eigenvalues(matrix);
}

// KᵀK = FᵀF, so K = UF with orthonormal columns of U, as R of its QR factors; the squared singular values of QKᵀ are
// the eigenvalues of F(QᵀQ)Fᵀ. F comes from LDLᵀ with pivots, which takes matrices without full rank, too.
std::vector<double> singular_values_of_product(std::span<const double> gram_q, std::span<const double> gram_k,
                                               std::int64_t d) {
  HEADSCOPE_CHECK(static_cast<std::int64_t>(gram_q.size()) == d * d && gram_k.size() == gram_q.size(),
                  "{} and {} values, d {}", gram_q.size(), gram_k.size(), d);
  const Eigen::Map<const Eigen::MatrixXd> of_q(gram_q.data(), d, d), of_k(gram_k.data(), d, d);
  if (!of_q.allFinite() || !of_k.allFinite()) return std::vector<double>(static_cast<std::size_t>(d), missing);
  const double unit = of_k.diagonal().maxCoeff() > 0 ? of_k.diagonal().maxCoeff() : 1;  // squares stay in range
  const Eigen::LDLT<Eigen::MatrixXd> factors(of_k / unit);
  const Eigen::MatrixXd permuted = factors.transpositionsP() * Eigen::MatrixXd::Identity(d, d);
  const Eigen::MatrixXd factor =
      factors.vectorD().cwiseMax(0).cwiseSqrt().asDiagonal() * Eigen::MatrixXd(factors.matrixU() * permuted);
  std::vector<double> values = roots_of_eigenvalues(factor * of_q * factor.transpose());
  for (double& value : values) value *= std::sqrt(unit);
  return values;
}

double effective_rank(std::span<const double> singular_values) {
  const std::vector<double> shares = normalised(singular_values, sum_of(singular_values));
  if (shares.empty()) return missing;
  double entropy = 0;
  for (const double share : shares)
    if (share > 0) entropy -= share * std::log(share);
  return std::exp(entropy);
}

double participation_ratio(std::span<const double> singular_values) {
  const std::vector<double> s = normalised(singular_values, largest(singular_values));
  return s.empty() ? missing : std::pow(sum_of(s), 2) / sum_of_squares(s);
}

double eigen_participation_ratio(std::span<const double> singular_values) {
  std::vector<double> s = normalised(singular_values, largest(singular_values));
  for (double& value : s) value *= value;
  return s.empty() ? missing : std::pow(sum_of(s), 2) / sum_of_squares(s);
}

double stable_rank(std::span<const double> singular_values) {
  const std::vector<double> s = normalised(singular_values, largest(singular_values));
  return s.empty() ? missing : sum_of_squares(s);
}

}  // namespace headscope
