// Ordinary least squares with an intercept on one regressor: x = alpha + beta t + residual (PLASTICITY steps 5, 6, 8,
// 9).
//   beta = sum (t - tbar)(x - xbar) / sum (t - tbar)^2,  alpha = xbar - beta tbar,
//   R2 = 1 - SSres / max(SStot, 1e-12), which is at most 1. NaN in a column gives NaN for that column.
// All t equal (or one row): beta 0, R2 0, alpha xbar. A constant x has R2 = 1 by this formula.
#pragma once

#include <Eigen/Core>
#include <span>
#include <vector>

namespace headscope {

// The regressor about its mean, shared by the columns that are regressed on it.
struct CentredRegressor {
  double mean = 0;
  std::vector<double> deviations;  // t - mean
  double sum_squares = 0;          // of the deviations
};
CentredRegressor centre(std::span<const double> t);

struct ColumnFit {
  double mean = 0;  // of x
  double alpha = 0, beta = 0, r2 = 0;
  double resid_variance = 1;  // of the residuals, n - 1 in the denominator; 1 for n < 2
};
ColumnFit fit_column(const CentredRegressor& t, std::span<const double> x);

// One fit per column.
struct LineFits {
  Eigen::VectorXd alpha, beta, r2;
  Eigen::VectorXd resid_variance;  // of the residuals, n - 1 in the denominator; ones for n < 2
};

// Regresses every column of x_nd (column-major, n >= 1 rows) on t_n.
LineFits fit_lines(std::span<const double> t_n, const Eigen::Ref<const Eigen::MatrixXd>& x_nd);

struct LineFit : ColumnFit {
  std::vector<double> residuals;  // x - alpha - beta t
};

// The same for one column, with its residuals; n >= 1.
LineFit fit_line(std::span<const double> t, std::span<const double> x);

}  // namespace headscope
