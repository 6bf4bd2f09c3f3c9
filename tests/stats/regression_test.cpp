#include "stats/regression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "stats/oracle.h"

namespace headscope {
namespace {

struct Sample {
  std::vector<double> t;
  Eigen::MatrixXd x_nd;
};

// As in the oracle: t = floor(1000 u0), column j = u_j + j t / 1000 + 10 j.
Sample draw(std::uint64_t seed, Eigen::Index n, Eigen::Index d) {
  NumpyGenerator generator(seed);
  Sample sample{std::vector<double>(static_cast<std::size_t>(n)), Eigen::MatrixXd(n, d)};
  for (Eigen::Index i = 0; i < n; ++i) {
    double& t = sample.t[static_cast<std::size_t>(i)];
    t = std::floor(1000 * generator.uniform());
    for (Eigen::Index j = 1; j <= d; ++j) {
      const auto scale = static_cast<double>(j);
      sample.x_nd(i, j - 1) = generator.uniform() + scale * t / 1000 + 10 * scale;
    }
  }
  return sample;
}

std::span<const double> column(const Eigen::MatrixXd& x_nd, Eigen::Index j) {
  return {x_nd.col(j).data(), static_cast<std::size_t>(x_nd.rows())};
}

TEST(Regression, AgreesWithNumpy) {
  for (const auto& oracle : test::stats_oracle("regression")) {
    const auto [t, x_nd] = draw(oracle["seed"], oracle["n"], oracle["d"]);
    const LineFits fits = fit_lines(t, x_nd);
    for (Eigen::Index j = 0; j < x_nd.cols(); ++j) {
      const auto expected = oracle["fits"][static_cast<std::size_t>(j)].get<std::vector<double>>();
      const double scale = std::fabs(expected[0]);  // the offset, which numpy's plain sum(t_c x) carries along
      EXPECT_NEAR(fits.alpha[j], expected[0], 1e-12 * scale);
      EXPECT_NEAR(fits.beta[j], expected[1], 1e-12);  // the formula
      EXPECT_NEAR(fits.beta[j], expected[2], 1e-12);  // numpy.linalg.lstsq
      EXPECT_NEAR(fits.r2[j], expected[3], 1e-12);
      EXPECT_NEAR(fits.resid_variance[j], expected[4], 1e-12);
    }
  }
}

TEST(Regression, OneColumnIsTheSameFitWithItsResiduals) {
  const auto [t, x_nd] = draw(1, 100, 3);
  const LineFits fits = fit_lines(t, x_nd);
  for (Eigen::Index j = 0; j < 3; ++j) {
    const LineFit fit = fit_line(t, column(x_nd, j));
    EXPECT_EQ(fit.alpha, fits.alpha[j]);
    EXPECT_EQ(fit.beta, fits.beta[j]);
    EXPECT_EQ(fit.r2, fits.r2[j]);
    EXPECT_EQ(fit.resid_variance, fits.resid_variance[j]);
    double sum = 0, moment = 0, squares = 0;
    for (std::size_t i = 0; i < t.size(); ++i) {
      EXPECT_NEAR(fit.residuals[i], column(x_nd, j)[i] - fit.alpha - fit.beta * t[i], 1e-13);
      sum += fit.residuals[i];
      moment += fit.residuals[i] * t[i];
      squares += fit.residuals[i] * fit.residuals[i];
    }
    EXPECT_NEAR(sum, 0, 1e-12);     // the normal equations: residuals are orthogonal to 1
    EXPECT_NEAR(moment, 0, 1e-10);  // and to t, which is up to 1000
    EXPECT_NEAR(squares / 99, fit.resid_variance, 1e-14);
  }
}

TEST(Regression, FindsAnExactLine) {
  const std::vector<double> t = {0, 1, 2, 5};
  const std::vector<double> x = {3, 1, -1, -7};
  const LineFit fit = fit_line(t, x);
  EXPECT_DOUBLE_EQ(fit.alpha, 3);
  EXPECT_DOUBLE_EQ(fit.beta, -2);
  EXPECT_DOUBLE_EQ(fit.r2, 1);
  EXPECT_NEAR(fit.resid_variance, 0, 1e-30);
}

TEST(Regression, KeepsDigitsOfAGoodFitFarFromTheOrigin) {
  // Residuals +-1e-6 around a line with values up to 1e6: 1 - beta^2 Stt / SStot would have no digit left.
  std::vector<double> t, x;
  for (int i = 0; i < 1000; ++i) {
    t.push_back(i);
    x.push_back(1e6 + i + (i % 4 == 0 || i % 4 == 3 ? 0x1p-20 : -0x1p-20));
  }
  const LineFit fit = fit_line(t, x);
  EXPECT_NEAR(fit.resid_variance / (0x1p-40 * 1000 / 999), 1, 1e-5);  // t and the signs are almost orthogonal
}

TEST(Regression, EqualPositionsHaveNoSlope) {
  const std::vector<double> x = {1, 2, 3, 4, 5, 6, 7};
  const LineFit fit = fit_line(std::vector<double>(7, 3.0), x);
  EXPECT_EQ(fit.beta, 0);
  EXPECT_EQ(fit.r2, 0);
  EXPECT_EQ(fit.alpha, 4);
  EXPECT_DOUBLE_EQ(fit.resid_variance, 28.0 / 6);
  EXPECT_EQ(fit.residuals, (std::vector<double>{-3, -2, -1, 0, 1, 2, 3}));
}

TEST(Regression, EqualPositionsAreRecognisedWhateverTheirMeanIsRoundedTo) {
  for (const double position : {0.1, 1e6 / 3, 0.7e-5}) {
    for (std::size_t n = 2; n < 100; ++n) {
      std::vector<double> x(n, 1.0);
      x[0] = 2;
      const LineFit fit = fit_line(std::vector<double>(n, position), x);
      ASSERT_EQ(fit.beta, 0) << n << " x " << position;
      ASSERT_EQ(fit.r2, 0) << n << " x " << position;
    }
  }
}

TEST(Regression, ATinyTotalCountsAsTheFloor) {
  const LineFit fit = fit_line(std::vector<double>{0, 1, 2}, std::vector<double>{0, 1e-7, 0});
  const double residual = 2.0 / 3 * 1e-14;  // about the mean, which is the line
  EXPECT_NEAR(fit.r2, 1 - residual / 1e-12, 1e-15);
}

TEST(Regression, UndefinedValuesStayInTheirColumn) {
  Eigen::MatrixXd x_nd = Eigen::MatrixXd::Random(5, 2);
  x_nd(3, 1) = std::numeric_limits<double>::quiet_NaN();
  const LineFits fits = fit_lines(std::vector<double>{1, 2, 3, 4, 5}, x_nd);
  EXPECT_FALSE(std::isnan(fits.r2[0]));
  EXPECT_TRUE(std::isnan(fits.r2[1]));
  EXPECT_TRUE(std::isnan(fits.beta[1]));
}

TEST(Regression, AConstantColumnHasR2One) {
  const std::vector<double> t = {1, 2, 4, 8, 9};
  for (const double value : {0.0, 0.1, 1e6 / 3}) {
    const LineFit fit = fit_line(t, std::vector<double>(5, value));
    EXPECT_NEAR(fit.alpha, value, 1e-15 * value);
    EXPECT_NEAR(fit.beta, 0, 1e-16 * value);
    EXPECT_EQ(fit.r2, 1);
    EXPECT_NEAR(fit.resid_variance, 0, 1e-15);
  }
}

TEST(Regression, OneAndTwoRows) {
  const Eigen::MatrixXd one = Eigen::MatrixXd::Constant(1, 2, 5);
  const LineFits single = fit_lines(std::vector<double>{3}, one);
  EXPECT_EQ(single.alpha[1], 5);
  EXPECT_EQ(single.beta[1], 0);
  EXPECT_EQ(single.r2[1], 0);
  EXPECT_EQ(single.resid_variance[1], 1);
  const LineFit pair = fit_line(std::vector<double>{1, 3}, std::vector<double>{2, 6});
  EXPECT_DOUBLE_EQ(pair.beta, 2);
  EXPECT_NEAR(pair.alpha, 0, 1e-15);
  EXPECT_DOUBLE_EQ(pair.r2, 1);
  EXPECT_NEAR(pair.resid_variance, 0, 1e-30);
}

TEST(Regression, RefusesUnequalSizes) {
  EXPECT_THROW(fit_line(std::vector<double>{1, 2}, std::vector<double>{1}), Error);
  EXPECT_THROW(fit_line({}, {}), Error);
  EXPECT_THROW(fit_lines(std::vector<double>{1, 2}, Eigen::MatrixXd::Zero(3, 1)), Error);
}

}  // namespace
}  // namespace headscope
