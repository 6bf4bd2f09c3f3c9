#include "plasticity/influence.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "stats/distributions.h"

namespace headscope {

double& TextSums::operator[](std::int64_t example_id) {
  const auto [entry, is_new] = place_.try_emplace(example_id, values_.size());
  if (is_new) {
    examples_.push_back(example_id);
    values_.push_back(0);
  }
  return values_[entry->second];
}

double TextSums::standard_error() const {
  const auto texts = static_cast<double>(values_.size());
  if (texts < 2) return missing;
  double squares = 0;
  for (const double influence : values_) squares += influence * influence;
  return std::sqrt(squares * texts / (texts - 1));
}

QueryInfluence::QueryInfluence(const Queries& queries, const QueryModel& model, Variant variant)
    : queries_(queries),
      model_(model),
      semantic_(variant == Variant::seed && queries.x_nd.cols() > 1),
      mean_position_(queries.position_n.mean()),
      influence_n_(Eigen::VectorXd::Zero(queries.x_nd.rows())) {
  const Eigen::Index lines = variant == Variant::seed ? 1 : queries.x_nd.cols();
  for (Eigen::VectorXd* coefficients : {&line_c_, &slope_c_, &square_c_}) *coefficients = Eigen::VectorXd::Zero(lines);
}

void QueryInfluence::add(const CellPairs& cell) {
  const Eigen::Index lines = line_c_.size(), semantic = queries_.x_nd.cols() - lines;
  if (bucket_ != &cell.queries) {
    finish_bucket();
    bucket_ = &cell.queries;
    if (semantic_) {
      linear_s_ = Eigen::VectorXd::Zero(semantic);
      quadratic_ss_ = Eigen::MatrixXd::Zero(semantic, semantic);
    }
  }
  weight_ += cell.cell.weight;
  const double share = cell.cell.weight / static_cast<double>(cell.cell.n_pairs);
  const Eigen::Index pairs = cell.mean_p.size();
  Eigen::VectorXd by_mean_p = Eigen::VectorXd::Zero(pairs), by_variance_p = by_mean_p;  // share df/dm, share df/dv
  for (Eigen::Index p = 0; p < pairs; ++p) {
    if (std::isnan(cell.plasticity_p[p])) continue;
    const double deviation = std::sqrt(cell.variance_p[p]), z = cell.mean_p[p] / deviation;
    const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
    by_mean_p[p] = share * 4 * density * (1 - 2 * normal_cdf(z)) / deviation;
    by_variance_p[p] = -by_mean_p[p] * z / (2 * deviation);
  }
  const auto lines_pc = cell.delta_pd.leftCols(lines);
  const Eigen::VectorXd line_c = lines_pc.transpose() * by_mean_p;
  line_c_ += line_c;
  slope_c_ += line_c * (cell.queries.mean_position - mean_position_);
  square_c_ += lines_pc.cwiseAbs2().transpose() * by_variance_p;
  if (!semantic_) return;
  const auto semantic_ps = cell.delta_pd.rightCols(semantic);
  linear_s_ += semantic_ps.transpose() * by_mean_p;
  const RowMajorMatrix weighted_ps = by_variance_p.asDiagonal() * semantic_ps;
  quadratic_ss_.triangularView<Eigen::Lower>() += semantic_ps.transpose() * weighted_ps;
}

void QueryInfluence::finish_bucket() {
  if (bucket_ == nullptr || !semantic_) return;
  const Eigen::Index n = bucket_->size();
  const auto rows = queries_.x_nd.block(bucket_->begin, line_c_.size(), n, linear_s_.size());
  const Eigen::RowVectorXd mean_s = rows.colwise().mean();
  // With the diagonal halved, yᵀMy = 2 yᵀLy.
  quadratic_ss_.diagonal() /= 2;
  constexpr Eigen::Index tile_rows = 256;  // stay in the second-level cache
  Eigen::VectorXd linear_n(n), square_n(n);
  Eigen::MatrixXd y_ns, image_ns;
  for (Eigen::Index first = 0; first < n; first += tile_rows) {
    const Eigen::Index count = std::min(tile_rows, n - first);
    y_ns = rows.middleRows(first, count).rowwise() - mean_s;
    image_ns.noalias() = y_ns * quadratic_ss_.triangularView<Eigen::Lower>();
    linear_n.segment(first, count).noalias() = y_ns * linear_s_;
    square_n.segment(first, count) = 2 * image_ns.cwiseProduct(y_ns).rowwise().sum();
  }
  influence_n_.segment(bucket_->begin, n) +=
      (linear_n.array() + square_n.array() - square_n.mean()).matrix() / static_cast<double>(n);
}

TextSums QueryInfluence::finish(const CapturedVectors& captured) {
  TextSums by_text;
  if (weight_ == 0) return by_text;
  finish_bucket();
  bucket_ = nullptr;
  const auto rows = static_cast<double>(influence_n_.size());
  const Eigen::VectorXd t_n = queries_.position_n.array() - mean_position_;
  const double spread = t_n.squaredNorm();
  for (Eigen::Index c = 0; c < line_c_.size(); ++c) {
    const Eigen::ArrayXd residual_n =
        queries_.x_nd.col(c).array() - model_.alpha_d[c] - model_.beta_d[c] * queries_.position_n.array();
    influence_n_.array() += residual_n * (line_c_[c] / rows);
    if (spread > 0) influence_n_.array() += residual_n * t_n.array() * (slope_c_[c] / spread);
    influence_n_.array() += (residual_n.square() - residual_n.square().mean()) * (square_c_[c] / rows);
  }
  for (std::size_t i = 0; i < queries_.rows.size(); ++i)
    by_text[captured.example_id[queries_.rows[i]]] += influence_n_[static_cast<Eigen::Index>(i)] / weight_;
  return by_text;
}

}  // namespace headscope
