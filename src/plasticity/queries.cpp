#include "plasticity/queries.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>

#include "plasticity/keys.h"
#include "stats/kolmogorov.h"
#include "stats/regression.h"
#include "stats/sample_moments.h"

namespace headscope {
namespace {

std::span<const double> view(const Eigen::VectorXd& values) {
  return {values.data(), static_cast<std::size_t>(values.size())};
}

std::span<const double> column_of(const Eigen::MatrixXd& matrix, Eigen::Index column) {
  return {matrix.col(column).data(), static_cast<std::size_t>(matrix.rows())};
}

// Row-major float vectors into column-major doubles, with signs. Tiles keep both sides in cache.
template <class Scalar>
void transpose_oriented(const Scalar* vectors, const std::vector<std::uint32_t>& rows, const Eigen::VectorXd& sign_d,
                        Eigen::MatrixXd& x_nd) {
  constexpr Eigen::Index tile = 32;
  const Eigen::Index n = x_nd.rows(), d = x_nd.cols();
  for (Eigen::Index r0 = 0; r0 < n; r0 += tile)
    for (Eigen::Index c0 = 0; c0 < d; c0 += tile)
      for (Eigen::Index c = c0; c < std::min(c0 + tile, d); ++c) {
        double* out = x_nd.col(c).data();
        for (Eigen::Index r = r0; r < std::min(r0 + tile, n); ++r)
          out[r] =
              sign_d[c] * static_cast<double>(vectors[rows[static_cast<std::size_t>(r)] * static_cast<std::size_t>(d) +
                                                      static_cast<std::size_t>(c)]);
      }
}

// Step 4: one value of sliding_window for all queries in use.
std::optional<double> common_window(const CapturedVectors& captured, const std::vector<std::uint32_t>& rows) {
  if (captured.sliding_window.empty()) return std::nullopt;
  const double first = captured.sliding_window[rows.front()];
  const auto text = [](double value) { return std::isnan(value) ? std::string("null") : fmt::format("{}", value); };
  for (const std::uint32_t row : rows) {
    const double value = captured.sliding_window[row];
    if (value != first && !(std::isnan(value) && std::isnan(first)))
      fail_input("{}: column 'sliding_window' holds {} in row {} and {} in row {}; expected one value for a head",
                 captured.origin, text(first), rows.front(), text(value), row);
  }
  if (std::isnan(first) || first <= 0) return std::nullopt;
  return first;
}

std::vector<QueryBucket> bucket_ranges(const RowLabels& labels, const std::vector<std::uint32_t>& sorted_rows) {
  std::vector<QueryBucket> buckets;
  for (std::size_t i = 0; i < sorted_rows.size(); ++i) {
    const std::int64_t bucket = labels.bucket[sorted_rows[i]];
    const auto place = static_cast<Eigen::Index>(i);
    if (buckets.empty() || buckets.back().bucket != bucket) buckets.push_back({bucket, place, place, 0});
    buckets.back().end = place + 1;
  }
  return buckets;
}

// The largest mean distance of y >= 0 from its mean that rounding alone can make. With u = eps / 2:
//   - equal positions may differ by 4 u max(y), because a vector register of logarithms is rounded in another way than
//     a single one, and log(2) divides them;
//   - the mean of n values is off by at most n u max(y): n - 1 additions and a division, in any order.
// The sum is doubled for the terms in u^2 and the last sum.
double rounding_size(const Eigen::VectorXd& y) {
  return (static_cast<double>(y.size()) + 4) * std::numeric_limits<double>::epsilon() * y.maxCoeff();
}

// Step 6: how well the projection on the positional direction predicts log2(position + 1).
void predict_position(const Queries& queries, const Eigen::VectorXd& beta_d, QueryMetrics& metrics) {
  const Eigen::VectorXd y = (queries.position_n.array() + 1.0).log() / std::log(2.0);
  const auto n = static_cast<double>(y.size());
  metrics.beta_norm = beta_d.norm();
  metrics.mae_baseline = (y.array() - y.mean()).abs().sum() / n;
  const Eigen::VectorXd projection = metrics.beta_norm > 0
                                         ? Eigen::VectorXd(queries.x_nd * (beta_d / metrics.beta_norm))
                                         : Eigen::VectorXd::Zero(y.size());
  const LineFit fit = fit_line(view(projection), view(y));
  double residual_sum = 0;
  for (const double residual : fit.residuals) residual_sum += std::abs(residual);
  metrics.r2_scalar = fit.r2;
  metrics.mae_proj = residual_sum / n;
  if (metrics.mae_baseline > rounding_size(y)) {
    metrics.mae_ratio = metrics.mae_proj / metrics.mae_baseline;
  } else {  // all positions are equal: nothing is to be predicted
    metrics.mae_baseline = metrics.mae_proj = 0;
    metrics.mae_ratio = 1;
  }
}

// Step 9, first component: its residual against a normal distribution.
void test_first_component(const Queries& queries, QueryMetrics& metrics) {
  const std::vector<double> residuals = fit_line(view(queries.position_n), column_of(queries.x_nd, 0)).residuals;
  const SampleMoments residual = sample_moments(residuals);
  const double deviation = std::sqrt(residual.variance());
  if (deviation <= 0) return;  // the metrics keep 0, 0 and 1
  metrics.resid0_skew = residual.skewness();
  metrics.resid0_kurt = residual.excess_kurtosis();
  metrics.resid0_ks_d = ks_statistic(residuals, residual.mean, deviation);
  metrics.resid0_ks_p = ks_survival(metrics.resid0_ks_d, queries.x_nd.rows());
}

// Step 9, semantic components: each column against a normal distribution of its own mean and deviation.
class SemanticNormality {
 public:
  // Without rows or components enough, add() and store() leave the metrics as they are.
  SemanticNormality(std::int64_t rows, std::int64_t components, const PlasticityOptions& options)
      : tested_(rows >= 3 && components > 0), p_alpha_(options.p_alpha) {
    if (!tested_) return;
    const auto drawn =
        NumpyGenerator(options.seed).choice(components, std::min(options.normality_max_dims, components));
    in_ks_test_.insert(drawn.begin(), drawn.end());
  }

  void add(std::int64_t component, std::span<const double> x) {
    if (!tested_) return;
    const SampleMoments column = sample_moments(x);
    skews_.push_back(std::abs(column.skewness()));
    kurtoses_.push_back(std::abs(column.excess_kurtosis()));
    if (!in_ks_test_.contains(component)) return;
    const double deviation = std::sqrt(column.variance());
    const double distance = ks_statistic(x, column.mean, deviation == 0 ? 1.0 : deviation);
    p_values_.push_back(ks_survival(distance, static_cast<std::int64_t>(x.size())));
  }

  void store(QueryMetrics& metrics) const {
    if (!tested_) return;
    const auto below = std::count_if(p_values_.begin(), p_values_.end(), [&](double p) { return p < p_alpha_; });
    metrics.noise_frac_ks_p_lt_alpha = static_cast<double>(below) / static_cast<double>(p_values_.size());
    metrics.noise_med_abs_skew = median(skews_);
    metrics.noise_med_abs_kurt = median(kurtoses_);
    metrics.noise_med_ks_p = median(p_values_);
  }

 private:
  bool tested_;
  double p_alpha_;
  std::set<std::int64_t> in_ks_test_;  // components in the Kolmogorov-Smirnov test
  std::vector<double> skews_, kurtoses_, p_values_;
};

// Steps 8 and 9 in the rotated basis. A column is fitted and tested while it is in the cache.
void fit_rotated(const Queries& queries, const PlasticityOptions& options, QueryModel& model, StageTimes& times) {
  const Eigen::Index d = queries.x_nd.cols();
  for (Eigen::VectorXd* result : {&model.alpha_d, &model.beta_d, &model.resid_var_d}) result->resize(d);
  const CentredRegressor positions = centre(view(queries.position_n));
  SemanticNormality normality(queries.x_nd.rows(), d - 1, options);
  for (Eigen::Index c = 0; c < d; ++c) {
    const std::span<const double> column = column_of(queries.x_nd, c);
    const ColumnFit fit = timed(times, Stage::regress, [&] { return fit_column(positions, column); });
    model.alpha_d[c] = fit.alpha;
    model.beta_d[c] = fit.beta;
    model.resid_var_d[c] = fit.resid_variance;
    timed(times, Stage::normality,
          [&] { c == 0 ? test_first_component(queries, model.metrics) : normality.add(c - 1, column); });
  }
  normality.store(model.metrics);
}

}  // namespace

Queries prepare_queries(const CapturedVectors& captured, const RowLabels& labels, const Eigen::VectorXd& orientation_d,
                        std::int64_t max_rows, std::uint64_t seed) {
  std::vector<std::uint32_t> rows = sample_rows(captured.rows, max_rows, seed);
  Queries queries;
  queries.window = common_window(captured, rows);
  std::stable_sort(rows.begin(), rows.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return labels.bucket[a] < labels.bucket[b]; });
  const auto n = static_cast<Eigen::Index>(rows.size());
  queries.x_nd.resize(n, static_cast<Eigen::Index>(captured.dim));
  advise_huge_pages(queries.x_nd.data(), static_cast<std::size_t>(queries.x_nd.size()) * sizeof(double));
  if (captured.vector64.empty())
    transpose_oriented(captured.vector32.data(), rows, orientation_d, queries.x_nd);
  else
    transpose_oriented(captured.vector64.data(), rows, orientation_d, queries.x_nd);
  queries.position_n.resize(n);
  for (Eigen::Index i = 0; i < n; ++i)
    queries.position_n[i] = static_cast<double>(labels.position[rows[static_cast<std::size_t>(i)]]);
  queries.buckets = bucket_ranges(labels, rows);
  for (QueryBucket& bucket : queries.buckets)
    bucket.mean_position = queries.position_n.segment(bucket.begin, bucket.size()).mean();
  queries.rows = std::move(rows);
  return queries;
}

QueryModel fit_queries(Queries& queries, const PlasticityOptions& options, StageTimes& times) {
  QueryModel model;
  timed(times, Stage::regress, [&] {
    const LineFits by_component = fit_lines(view(queries.position_n), queries.x_nd);
    model.component_r2_d = by_component.r2;
    for (Eigen::Index c = 0; c < by_component.r2.size(); ++c)
      if (by_component.r2[c] == 1 && by_component.beta[c] == 0) model.constant_components.push_back(c);
    model.metrics.r2_pos = by_component.r2.mean();
    predict_position(queries, by_component.beta, model.metrics);

    model.rotation = reflection_onto(by_component.beta);
    reflect(model.rotation, queries.x_nd);
  });
  fit_rotated(queries, options, model, times);
  return model;
}

QueryModel fit_for_cells(Queries& queries, Variant variant) {
  QueryModel model;
  model.rotation = reflection_onto(fit_lines(view(queries.position_n), queries.x_nd).beta);
  reflect(model.rotation, queries.x_nd);
  const Eigen::Index used = variant == Variant::seed ? 1 : queries.x_nd.cols();
  const LineFits rotated = fit_lines(view(queries.position_n), queries.x_nd.leftCols(used));
  model.alpha_d = rotated.alpha;
  model.beta_d = rotated.beta;
  model.resid_var_d = rotated.resid_variance;
  return model;
}

}  // namespace headscope
