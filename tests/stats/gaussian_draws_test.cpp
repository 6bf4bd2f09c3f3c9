#include "stats/gaussian_draws.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <cmath>

#include "stats/spectrum.h"

namespace headscope {
namespace {

// Over N draws, a mean is off by some standard deviations over √N. Four of them: one in 16,000 draws is.
double tolerance(double variance, int draws) {
  return 4 * std::sqrt(variance / draws);
}

TEST(GaussianDraws, OfOneValueHaveTheMomentsOfTheNormal) {
  NumpyGenerator generator(1);
  constexpr int draws = 100'000;
  double sum = 0, squares = 0, fourths = 0;
  for (int i = 0; i < draws; ++i) {
    const double x = draw_normal(generator);
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
  }
  EXPECT_NEAR(sum / draws, 0, tolerance(1, draws));
  EXPECT_NEAR(squares / draws, 1, tolerance(2, draws));
  EXPECT_NEAR(fourths / draws, 3, tolerance(96, draws));
}

// Wishart: the mean is n·I; an entry has the variance 2n on the diagonal and n off it. Few degrees are drawn one by
// one, many by their cube root.
TEST(GaussianDraws, OfGramMatricesHaveTheMomentsOfWishart) {
  for (const std::int64_t n : {3, 50, 1000}) {
    constexpr std::int64_t d = 4;
    constexpr int draws = 20'000;
    NumpyGenerator generator(static_cast<std::uint64_t>(n));
    Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(d, d), squares = sum;
    for (int i = 0; i < draws; ++i) {
      const std::vector<double> gram = draw_gaussian_gram(n, d, generator);
      const Eigen::Map<const Eigen::MatrixXd> matrix(gram.data(), d, d);
      ASSERT_TRUE(matrix == matrix.transpose());
      sum += matrix;
      squares += matrix.cwiseProduct(matrix);
    }
    const auto rows = static_cast<double>(n);
    for (std::int64_t a = 0; a < d; ++a)
      for (std::int64_t b = 0; b < d; ++b) {
        const double mean = sum(a, b) / draws, variance = a == b ? 2 * rows : rows;
        EXPECT_NEAR(mean, a == b ? rows : 0, tolerance(variance, draws)) << n << ": " << a << ", " << b;
        // The fourth central moment is below 20 variances² for three rows, less for more.
        EXPECT_NEAR(squares(a, b) / draws - mean * mean, variance, tolerance(20 * variance * variance, draws))
            << n << ": " << a << ", " << b;
      }
  }
}

TEST(GaussianDraws, OfFewRowsHaveTheirRank) {
  NumpyGenerator generator(2);
  const std::vector<double> s = singular_values_of_gram(draw_gaussian_gram(2, 5, generator), 5);
  EXPECT_GT(s[1], 0.01);
  EXPECT_LT(s[2], 1e-6);
}

}  // namespace
}  // namespace headscope
