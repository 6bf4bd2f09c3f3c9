#include "stats/regression.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/error.h"
#include "stats/sample_moments.h"

namespace headscope {
namespace {

// A total sum of squares below this counts as this, so that a constant column divides 0 by it.
constexpr double kLeastTotal = 1e-12;

}  // namespace

CentredRegressor centre(std::span<const double> t) {
  CentredRegressor centred;
  // Refined once, so that equal values have deviations of exactly 0 whatever their mean was rounded to.
  const double rough = rough_mean(t);
  const auto [shift] = sums<1>(t.size(), [&](std::size_t i) { return std::array{t[i] - rough}; });
  centred.mean = rough + shift / static_cast<double>(t.size());
  centred.deviations.resize(t.size());
  for (std::size_t i = 0; i < t.size(); ++i) centred.deviations[i] = t[i] - centred.mean;
  const double* d = centred.deviations.data();
  centred.sum_squares = sums<1>(t.size(), [=](std::size_t i) { return std::array{d[i] * d[i]}; })[0];
  return centred;
}

ColumnFit fit_column(const CentredRegressor& t, std::span<const double> values) {
  const double* x = values.data();
  const std::size_t n = t.deviations.size();
  const auto count = static_cast<double>(n);
  const double* dt = t.deviations.data();
  const double rough = rough_mean({x, n});
  const auto [s1, ss_total, s1t] = sums<3>(n, [=](std::size_t i) {
    const double d = x[i] - rough;
    return std::array{d, d * d, d * dt[i]};
  });
  const double mean = rough + s1 / count;
  const bool degenerate = !(t.sum_squares > 0);
  const double beta = degenerate ? 0 : s1t / t.sum_squares;
  // From the residuals themselves: SStot - beta^2 sum(dt^2) would lose all digits of a good fit.
  const auto [ss_residual] = sums<1>(n, [=](std::size_t i) {
    const double residual = x[i] - mean - beta * dt[i];
    return std::array{residual * residual};
  });
  return {
      .mean = mean,
      .alpha = mean - beta * t.mean,
      .beta = beta,
      .r2 = degenerate ? 0 : 1 - ss_residual / std::max(ss_total, kLeastTotal),
      .resid_variance = n < 2 ? 1 : ss_residual / (count - 1),
  };
}

LineFits fit_lines(std::span<const double> t_n, const Eigen::Ref<const Eigen::MatrixXd>& x_nd) {
  HEADSCOPE_CHECK(x_nd.rows() >= 1 && static_cast<std::size_t>(x_nd.rows()) == t_n.size(), "{} positions, {} rows",
                  t_n.size(), x_nd.rows());
  const Eigen::Index d = x_nd.cols();
  LineFits fits;
  for (Eigen::VectorXd* result : {&fits.alpha, &fits.beta, &fits.r2, &fits.resid_variance}) result->resize(d);
  const CentredRegressor t = centre(t_n);
  for (Eigen::Index column = 0; column < d; ++column) {
    const ColumnFit fit = fit_column(t, {x_nd.col(column).data(), t_n.size()});
    fits.alpha[column] = fit.alpha;
    fits.beta[column] = fit.beta;
    fits.r2[column] = fit.r2;
    fits.resid_variance[column] = fit.resid_variance;
  }
  return fits;
}

LineFit fit_line(std::span<const double> t, std::span<const double> x) {
  HEADSCOPE_CHECK(!x.empty() && x.size() == t.size(), "{} regressors, {} values", t.size(), x.size());
  const CentredRegressor centred = centre(t);
  LineFit line{fit_column(centred, x), std::vector<double>(x.size())};
  for (std::size_t i = 0; i < x.size(); ++i) line.residuals[i] = x[i] - line.mean - line.beta * centred.deviations[i];
  return line;
}

}  // namespace headscope
