#include "plasticity/cells.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "stats/distributions.h"

namespace headscope {
namespace {

// Differences of two keys, oriented and rotated.
void rotate(const KeyGroups& keys, const Reflection& rotation, RowMajorMatrix& delta_pd) {
  delta_pd.array().rowwise() *= keys.orientation_d.transpose().array();
  reflect(rotation, Eigen::Ref<RowMajorMatrix>(delta_pd));
}

// Mean and variance of the score difference q·Δ over the queries of one bucket.
struct ScoreModel {
  Eigen::VectorXd mean_d;      // E[q]
  Eigen::VectorXd variance_d;  // diagonal part of Cov[q]
  // Full covariance Σ of components 1 … d-1, empty in the diagonal variant: its lower triangle with the diagonal
  // halved, so that xᵀΣx = 2 xᵀLx costs half the multiplications.
  Eigen::MatrixXd semantic_half_ss;
  double variance_if_zero = 0;  // replaces a variance that is not positive; NaN leaves the pair out
};

constexpr double variance_floor = 1e-12;

// The line in position gives the positional component, the queries of the bucket give the semantic ones.
ScoreModel seed_model(const Queries& queries, const QueryModel& model, const QueryBucket& bucket) {
  const Eigen::Index semantic = queries.x_nd.cols() - 1;
  ScoreModel score;
  score.mean_d.resize(semantic + 1);
  score.mean_d[0] = model.alpha_d[0] + model.beta_d[0] * bucket.mean_position;
  score.variance_d = Eigen::VectorXd::Zero(semantic + 1);
  score.variance_d[0] = model.resid_var_d[0];
  score.variance_if_zero = variance_floor;
  if (semantic == 0) return score;

  const auto rows = queries.x_nd.block(bucket.begin, 1, bucket.size(), semantic);
  const Eigen::RowVectorXd mean = rows.colwise().mean();
  score.mean_d.tail(semantic) = mean.transpose();
  const Eigen::MatrixXd centred = rows.rowwise() - mean;
  score.semantic_half_ss = Eigen::MatrixXd::Zero(semantic, semantic);
  score.semantic_half_ss.selfadjointView<Eigen::Lower>().rankUpdate(centred.transpose(),
                                                                    1.0 / static_cast<double>(bucket.size() - 1));
  score.semantic_half_ss.diagonal() = (score.semantic_half_ss.diagonal().array() + variance_floor) / 2;
  return score;
}

ScoreModel diagonal_model(const QueryModel& model, const QueryBucket& bucket) {
  ScoreModel score;
  score.mean_d = model.alpha_d + model.beta_d * bucket.mean_position;
  score.variance_d = model.resid_var_d.unaryExpr([](double value) { return value <= 0 ? variance_floor : value; });
  score.variance_if_zero = missing;
  return score;
}

// Mean and variance of the score difference of each pair, and 4 p (1 - p) with p = Phi(mean / sqrt(variance)).
struct PairScores {
  Eigen::VectorXd mean_p, variance_p, plasticity_p;
};

PairScores pair_scores(const ScoreModel& score, const RowMajorMatrix& delta_pd) {
  PairScores scores{delta_pd * score.mean_d, delta_pd.cwiseAbs2() * score.variance_d, {}};
  Eigen::VectorXd& variance_p = scores.variance_p;
  if (score.semantic_half_ss.size() != 0) {
    const auto semantic_ps = delta_pd.rightCols(delta_pd.cols() - 1);
    const RowMajorMatrix image_ps = semantic_ps * score.semantic_half_ss.triangularView<Eigen::Lower>();
    for (Eigen::Index p = 0; p < variance_p.size(); ++p) variance_p[p] += 2 * image_ps.row(p).dot(semantic_ps.row(p));
  }
  const double if_zero = score.variance_if_zero;
  variance_p = variance_p.unaryExpr([if_zero](double variance) { return variance > 0 ? variance : if_zero; });
  Eigen::VectorXd& z_p = scores.plasticity_p;
  z_p = scores.mean_p.cwiseQuotient(variance_p.cwiseSqrt());
  const std::span<double> values(z_p.data(), static_cast<std::size_t>(z_p.size()));
  normal_plasticity(values, values);
  return scores;
}

// Fills in the cell from the plasticities of its pairs. A pair with NaN is left out.
void fill_cell(Cell& cell, const std::vector<KeyPair>& pairs, const Eigen::VectorXd& plasticity_p) {
  std::vector<ExampleSum> by_example;
  double sum = 0;
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    const double value = plasticity_p[static_cast<Eigen::Index>(p)];
    if (std::isnan(value)) continue;
    const std::uint32_t example = pairs[p].example;
    if (example >= by_example.size()) by_example.resize(example + 1);
    by_example[example].example = example;
    by_example[example].sum += value;
    ++by_example[example].count;
    sum += value;
    ++cell.n_pairs;
  }
  if (cell.n_pairs == 0) return;
  const auto count = static_cast<double>(cell.n_pairs);
  cell.plasticity = sum / count;
  if (cell.n_pairs > 1) {
    double squares = 0;
    for (const double value : plasticity_p)
      if (!std::isnan(value)) squares += (value - cell.plasticity) * (value - cell.plasticity);
    cell.se_pairs = std::sqrt(squares / (count - 1) / count);
  }
  std::erase_if(by_example, [](const ExampleSum& example) { return example.count == 0; });
  cell.n_examples = static_cast<std::int64_t>(by_example.size());
  cell.examples = std::move(by_example);
}

// Queries see keys of earlier buckets, with a window only those at most `window` buckets (or tokens) back.
bool sees(const QueryBucket& query, const KeyBucket& key, const std::optional<double>& window, WindowUnit unit) {
  if (key.bucket >= query.bucket) return false;
  if (!window) return true;
  const double reach = std::max(std::floor(*window), 1.0);
  if (unit == WindowUnit::tokens) return query.mean_position - key.mean_position <= reach;
  return static_cast<double>(query.bucket - key.bucket) <= reach;
}

}  // namespace

std::vector<Cell> evaluate_cells(const Queries& queries, const QueryModel& model, const CapturedVectors& vectors,
                                 const KeyGroups& keys, const PlasticityOptions& options, NumpyGenerator generator,
                                 StageTimes& times, const CellObserver& observe) {
  const bool seed_variant = options.variant == Variant::seed;
  std::vector<Cell> cells;
  std::vector<KeyPair> pairs;
  RowMajorMatrix delta_pd, captured_pd;
  for (const QueryBucket& query : queries.buckets) {
    if (query.bucket <= 0) continue;                           // nothing lies before the first bucket
    const bool reported = !seed_variant || query.size() >= 2;  // no covariance of one row
    ScoreModel score;
    if (reported)
      score = timed(times, Stage::plasticity,
                    [&] { return seed_variant ? seed_model(queries, model, query) : diagonal_model(model, query); });
    for (std::size_t k = 0; k < keys.buckets.size(); ++k) {
      if (!sees(query, keys.buckets[k], queries.window, options.window)) continue;
      // The pairs of a cell that is not reported are drawn all the same: later cells depend on the generator's state.
      timed(times, Stage::sample, [&] { draw_pairs(keys.buckets[k], options.pairs_per_bucket, generator, pairs); });
      if (!reported) continue;
      Cell cell;
      cell.q_bucket = query.bucket;
      cell.k_bucket = keys.buckets[k].bucket;
      cell.key_bucket_index = k;
      cell.n_queries = query.size();
      if (seed_variant) cell.weight = static_cast<double>(query.size());
      if (!pairs.empty()) {
        const PairScores scores = timed(times, Stage::plasticity, [&] {
          key_differences(vectors, pairs, delta_pd);
          if (observe) captured_pd = delta_pd;
          rotate(keys, model.rotation, delta_pd);
          return pair_scores(score, delta_pd);
        });
        timed(times, Stage::plasticity, [&] { fill_cell(cell, pairs, scores.plasticity_p); });
        if (observe && !cell.empty())
          observe({cell, query, pairs, captured_pd, delta_pd, scores.mean_p, scores.variance_p, scores.plasticity_p});
      }
      cells.push_back(std::move(cell));
    }
  }
  return cells;
}

double weighted_mean(const std::vector<Cell>& cells) {
  double sum = 0, weight = 0;
  for (const Cell& cell : cells) {
    if (cell.empty()) continue;
    sum += cell.weight * cell.plasticity;
    weight += cell.weight;
  }
  return weight > 0 ? sum / weight : missing;
}

}  // namespace headscope
