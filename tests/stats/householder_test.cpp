#include "stats/householder.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "stats/oracle.h"

namespace headscope {
namespace {

Eigen::VectorXd random_vector(Eigen::Index d, std::uint64_t seed) {
  NumpyGenerator generator(seed);
  return Eigen::VectorXd::NullaryExpr(d, [&] { return generator.uniform() - 0.5; });
}

Eigen::MatrixXd random_matrix(Eigen::Index n, Eigen::Index d, std::uint64_t seed) {
  NumpyGenerator generator(seed);
  return Eigen::MatrixXd::NullaryExpr(n, d, [&] { return generator.uniform() - 0.5; });
}

// I H: the matrix of the reflection.
Eigen::MatrixXd matrix_of(const Reflection& reflection) {
  Eigen::MatrixXd h = Eigen::MatrixXd::Identity(reflection.v.size(), reflection.v.size());
  reflect(reflection, h);
  return h;
}

double largest(const Eigen::MatrixXd& x) {
  return x.cwiseAbs().maxCoeff();
}

Eigen::MatrixXd matrix_from(const nlohmann::json& rows) {
  const auto values = rows.get<std::vector<std::vector<double>>>();
  return Eigen::MatrixXd::NullaryExpr(static_cast<Eigen::Index>(values.size()),
                                      static_cast<Eigen::Index>(values[0].size()),
                                      [&](Eigen::Index i, Eigen::Index j) { return values[i][j]; });
}

TEST(Householder, TurnsTheFirstAxisIntoBeta) {
  for (const Eigen::Index d : {2, 3, 64, 129}) {
    const Eigen::VectorXd beta = random_vector(d, 1);
    const Reflection reflection = reflection_onto(beta);
    ASSERT_FALSE(reflection.identity);
    const Eigen::MatrixXd h = matrix_of(reflection);
    const double rounding = 1e-15;  // a few eps: entries are sums of two products of numbers below 1
    EXPECT_LT(largest(h.col(0) - beta / beta.norm()), rounding);
    EXPECT_LT(largest(h - h.transpose()), rounding);
    EXPECT_LT(largest(h * h.transpose() - Eigen::MatrixXd::Identity(d, d)), 4 * rounding);
  }
}

TEST(Householder, AgreesWithFiftyDigits) {
  for (const auto& oracle : test::stats_oracle("householder")) {
    const auto beta = oracle["beta"].get<std::vector<double>>();
    const Reflection reflection =
        reflection_onto(Eigen::Map<const Eigen::VectorXd>(beta.data(), static_cast<Eigen::Index>(beta.size())));
    EXPECT_LT(largest(matrix_of(reflection) - matrix_from(oracle["h"])), 1e-15) << oracle["beta"];
    Eigen::MatrixXd x = matrix_from(oracle["x"]);
    reflect(reflection, x);
    EXPECT_LT(largest(x - matrix_from(oracle["xh"])), 1e-14);
  }
}

TEST(Householder, AppliesToBothLayoutsAndUndoesItself) {
  for (const Eigen::Index n : {1, 255, 256, 257, 1000}) {  // around the size of a block
    const Eigen::MatrixXd x = random_matrix(n, 33, 2);
    const Reflection reflection = reflection_onto(random_vector(33, 3));
    const Eigen::MatrixXd expected = x * matrix_of(reflection);
    Eigen::MatrixXd by_columns = x;
    RowMajorMatrix by_rows = x;
    reflect(reflection, by_columns);
    reflect(reflection, by_rows);
    EXPECT_LT(largest(by_columns - expected), 1e-14);
    EXPECT_LT(largest(by_rows - expected), 1e-14);
    reflect(reflection, by_columns);
    EXPECT_LT(largest(by_columns - x), 1e-14);
  }
}

TEST(Householder, IsTheIdentityForNoDirectionAndForTheFirstAxis) {
  Eigen::VectorXd along = Eigen::VectorXd::Zero(5);
  EXPECT_TRUE(reflection_onto(along).identity);
  along[0] = 1e-13;
  along[1] = 1e-13;
  EXPECT_TRUE(reflection_onto(along).identity);
  along << 3, 1e-13, 0, 0, 0;
  const Reflection reflection = reflection_onto(along);
  EXPECT_TRUE(reflection.identity);
  EXPECT_EQ(matrix_of(reflection), (Eigen::MatrixXd::Identity(5, 5)));
  EXPECT_TRUE(reflection_onto(Eigen::VectorXd::Constant(1, 2.0)).identity);
}

TEST(Householder, TurnsTheFirstAxisAround) {
  const Eigen::MatrixXd h = matrix_of(reflection_onto(-Eigen::VectorXd::Unit(4, 0)));
  EXPECT_EQ(h, (Eigen::MatrixXd(Eigen::Vector4d(-1, 1, 1, 1).asDiagonal())));
}

TEST(Householder, RefusesOtherDimensions) {
  Eigen::MatrixXd x = Eigen::MatrixXd::Zero(2, 3);
  EXPECT_THROW(reflect(reflection_onto(random_vector(4, 1)), x), Error);
}

}  // namespace
}  // namespace headscope
