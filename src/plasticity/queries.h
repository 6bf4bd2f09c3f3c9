// The query side of a head: vectors in the positional basis, what position predicts of them, and how normal they are
// (PLASTICITY steps 4 to 9).
#pragma once

#include <Eigen/Core>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/missing.h"
#include "formats/captured_vectors.h"
#include "plasticity/labels.h"
#include "plasticity/options.h"
#include "plasticity/stages.h"
#include "stats/householder.h"

namespace headscope {

struct QueryBucket {
  std::int64_t bucket = 0;
  Eigen::Index begin = 0, end = 0;  // rows of Queries::x_nd
  double mean_position = 0;
  [[nodiscard]] Eigen::Index size() const { return end - begin; }
};

// Sorted by bucket, so that a bucket is a range of rows.
struct Queries {
  Eigen::MatrixXd x_nd;  // column-major: statistics run down columns
  Eigen::VectorXd position_n;
  std::vector<std::uint32_t> rows;   // of the file, one for each row of x_nd
  std::vector<QueryBucket> buckets;  // ascending
  std::optional<double> window;      // sliding window, where there is one
};

// Numbers of the table head_metrics.csv that depend on the queries alone.
struct QueryMetrics {
  double r2_pos = 0, beta_norm = 0;
  double r2_scalar = 0, mae_baseline = 0, mae_proj = 0, mae_ratio = 1;
  double resid0_skew = 0, resid0_kurt = 0, resid0_ks_p = 1;
  double resid0_ks_d = missing;  // the distance behind resid0_ks_p; in no column of head_metrics.csv
  double noise_med_abs_skew = 0, noise_med_abs_kurt = 0, noise_med_ks_p = 1, noise_frac_ks_p_lt_alpha = 0;
};

// The metrics in the order of the table, with the names of their columns.
inline constexpr std::array<std::pair<std::string_view, double QueryMetrics::*>, 13> query_metrics = {{
    {"q_R2_pos", &QueryMetrics::r2_pos},
    {"q_beta_norm", &QueryMetrics::beta_norm},
    {"q_R2_scalar", &QueryMetrics::r2_scalar},
    {"q_mae_baseline", &QueryMetrics::mae_baseline},
    {"q_mae_proj", &QueryMetrics::mae_proj},
    {"q_mae_ratio", &QueryMetrics::mae_ratio},
    {"q_resid0_skew", &QueryMetrics::resid0_skew},
    {"q_resid0_kurt", &QueryMetrics::resid0_kurt},
    {"q_resid0_ks_p", &QueryMetrics::resid0_ks_p},
    {"q_noise_med_abs_skew", &QueryMetrics::noise_med_abs_skew},
    {"q_noise_med_abs_kurt", &QueryMetrics::noise_med_abs_kurt},
    {"q_noise_med_ks_p", &QueryMetrics::noise_med_ks_p},
    {"q_noise_frac_ks_p_lt_alpha", &QueryMetrics::noise_frac_ks_p_lt_alpha},
}};

// The linear model of the queries in the rotated basis: mean alpha + beta t, residual variance per dimension.
struct QueryModel {
  Reflection rotation;
  Eigen::VectorXd alpha_d, beta_d, resid_var_d;
  Eigen::VectorXd component_r2_d;  // before rotation: how well position predicts each component
  std::vector<std::int64_t> constant_components;
  QueryMetrics metrics;
};

Queries prepare_queries(const CapturedVectors& captured, const RowLabels& labels, const Eigen::VectorXd& orientation_d,
                        std::int64_t max_rows, std::uint64_t seed);

// Fits the model and rotates `queries` in place.
QueryModel fit_queries(Queries& queries, const PlasticityOptions& options, StageTimes& times);

// The same without metrics, for the cells alone: the rotation, and the line of each component that the variant uses.
QueryModel fit_for_cells(Queries& queries, Variant variant);

}  // namespace headscope
