#include "plasticity/demo.h"

#include <Eigen/QR>
#include <cmath>
#include <numbers>

#include "core/random.h"
#include "formats/capture_writer.h"
#include "stats/normal.h"

namespace headscope {
namespace {

constexpr std::int64_t layers = 2, q_heads = 4, k_heads = 2;
constexpr Eigen::Index demo_dim = 16, key_rank = 3;  // three directions: the cosine with a fixed vector is then uniform
constexpr std::int64_t examples = 48, length = 512;
constexpr int demo_buckets = 9;  // floor(log2(position + 1)) for positions below 512

// Standard normal numbers by the method of Box and Muller.
class Gaussian {
 public:
  explicit Gaussian(std::uint64_t seed) : generator_(seed) {}
  double operator()() {
    const double radius = std::sqrt(-2 * std::log(1 - generator_.uniform()));
    return radius * std::cos(2 * std::numbers::pi * generator_.uniform());
  }
  Eigen::MatrixXd matrix(Eigen::Index rows, Eigen::Index cols) {
    return Eigen::MatrixXd::NullaryExpr(rows, cols, [this] { return (*this)(); });
  }

 private:
  NumpyGenerator generator_;
};

Eigen::MatrixXd orthonormal(Eigen::MatrixXd columns) {
  const Eigen::Index rows = columns.rows(), cols = columns.cols();
  return Eigen::HouseholderQR<Eigen::MatrixXd>(std::move(columns)).householderQ() *
         Eigen::MatrixXd::Identity(rows, cols);
}

// What the query heads of one key head share: the noise of the queries, and where the keys vary.
struct GroupTruth {
  Eigen::MatrixXd axes_dd;               // eigenvectors of the query covariance; positions drift along the first
  Eigen::VectorXd deviation_d;           // square roots of its eigenvalues
  std::vector<Eigen::MatrixXd> keys_dr;  // for each key bucket: whitened directions in which keys vary

  [[nodiscard]] Eigen::VectorXd whiten(const Eigen::VectorXd& x) const {
    return (axes_dd.transpose() * x).cwiseQuotient(deviation_d);
  }
};

// Mean of the queries of one head: offset + slope t.
struct HeadTruth {
  Eigen::VectorXd offset_d, slope_d;
};

bool is_isotropic(const PlasticityOptions& options) {
  return options.variant == Variant::diagonal;
}

GroupTruth group_truth(std::int64_t layer, std::int64_t k_head, std::uint64_t seed, bool isotropic) {
  Gaussian gaussian(seed + 1000 + static_cast<std::uint64_t>(layer * k_heads + k_head));
  GroupTruth group;
  group.axes_dd = orthonormal(gaussian.matrix(demo_dim, demo_dim));
  group.deviation_d =
      isotropic ? Eigen::VectorXd::Ones(demo_dim) : Eigen::VectorXd(gaussian.matrix(demo_dim, 1).array().abs() + 0.5);
  for (int bucket = 0; bucket < demo_buckets; ++bucket)
    group.keys_dr.push_back(orthonormal(gaussian.matrix(demo_dim, key_rank)));
  return group;
}

// Heads differ in how far their mean lies from zero and how fast it drifts, from nearly undecided to nearly fixed.
HeadTruth head_truth(const HeadId& head, const GroupTruth& group, std::uint64_t seed) {
  const auto index = static_cast<double>(head.layer * q_heads + head.q_head);
  Gaussian gaussian(seed + 2000 + static_cast<std::uint64_t>(index));
  HeadTruth truth;
  truth.offset_d = gaussian.matrix(demo_dim, 1) * (0.1 + 0.5 * index);
  truth.slope_d = group.axes_dd.col(0) * (1.0 + 1.5 * static_cast<double>(head.q_head)) / static_cast<double>(length);
  return truth;
}

int bucket_of(std::int64_t position) {
  return static_cast<int>(std::floor(std::log2(static_cast<double>(position) + 1)));
}

// Every position of every example, so that the mean position of a bucket is known.
CapturedVectors every_position() {
  CapturedVectors vectors;
  vectors.rows = static_cast<std::size_t>(examples * (length - 1));
  vectors.dim = static_cast<std::size_t>(demo_dim);
  for (std::int64_t example = 0; example < examples; ++example)
    for (std::int64_t position = 0; position + 1 < length; ++position) {
      vectors.example_id.push_back(example);
      vectors.position.push_back(position);
      vectors.bucket.push_back(bucket_of(position));
    }
  vectors.vector32.resize(vectors.rows * vectors.dim);
  return vectors;
}

template <class Row>
CapturedVectors fill(Row row) {
  CapturedVectors vectors = every_position();
  for (std::size_t r = 0; r < vectors.rows; ++r)
    Eigen::Map<Eigen::VectorXf>(vectors.vector32.data() + r * vectors.dim, demo_dim) =
        row(vectors.position[r], static_cast<std::size_t>(vectors.bucket[r])).template cast<float>();
  return vectors;
}

std::uint64_t noise_seed(std::uint64_t seed, std::int64_t layer, std::int64_t head, bool keys) {
  return seed + 3000 + static_cast<std::uint64_t>(2 * (layer * q_heads + head) + (keys ? 1 : 0));
}

void write_queries(const Dataset& dataset, const HeadId& head, std::uint64_t seed, bool isotropic) {
  const GroupTruth group = group_truth(head.layer, head.k_head, seed, isotropic);
  const HeadTruth truth = head_truth(head, group, seed);
  Gaussian gaussian(noise_seed(seed, head.layer, head.q_head, false));
  const Eigen::MatrixXd colour_dd = group.axes_dd * group.deviation_d.asDiagonal();
  write_captured_vectors(dataset.query_file(head), fill([&](std::int64_t position, std::size_t) -> Eigen::VectorXd {
                           return truth.offset_d + truth.slope_d * static_cast<double>(position) +
                                  colour_dd * gaussian.matrix(demo_dim, 1);
                         }));
}

void write_keys(const Dataset& dataset, const HeadId& head, std::uint64_t seed, bool isotropic) {
  const GroupTruth group = group_truth(head.layer, head.k_head, seed, isotropic);
  Gaussian gaussian(noise_seed(seed, head.layer, head.k_head, true));
  const Eigen::VectorXd centre_d = gaussian.matrix(demo_dim, 1);
  const Eigen::MatrixXd spread_dd = group.axes_dd * group.deviation_d.cwiseInverse().asDiagonal();
  write_captured_vectors(dataset.key_file(head), fill([&](std::int64_t, std::size_t bucket) -> Eigen::VectorXd {
                           return centre_d + spread_dd * (group.keys_dr[bucket] * gaussian.matrix(key_rank, 1));
                         }));
}

double mean_position(std::int64_t bucket) {
  const auto first = static_cast<double>((std::int64_t{1} << bucket) - 1);
  return first + (static_cast<double>(std::int64_t{1} << bucket) - 1) / 2;
}

// z = Δ·m / sqrt(Δᵀ Σ Δ); with Δ = Σ^(-1/2) B y, y isotropic in three dimensions, z = |Bᵀ Σ^(-1/2) m| cos(angle).
double cell_truth(const CellResult& cell, const HeadTruth& truth, const GroupTruth& group) {
  const Eigen::VectorXd mean_d = truth.offset_d + truth.slope_d * mean_position(cell.q_bucket);
  const Eigen::MatrixXd& keys_dr = group.keys_dr[static_cast<std::size_t>(cell.k_bucket)];
  return plasticity_of_uniform((keys_dr.transpose() * group.whiten(mean_d)).norm());
}

}  // namespace

double plasticity_of_uniform(double r) {
  if (r < 1e-3) return 1 - 2 / (3 * std::numbers::pi) * r * r;  // next term below 1e-13
  // Antiderivative of Phi - Phi²: x Phi + phi - x Phi² - 2 Phi phi + Phi(√2 x)/√π.
  const auto integral = [](double x) {
    const double cdf = normal_cdf(x), density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    return x * cdf * (1 - cdf) + density * (1 - 2 * cdf) +
           normal_cdf(std::numbers::sqrt2 * x) / std::sqrt(std::numbers::pi);
  };
  return 4 * (integral(r) - integral(0)) / r;
}

Dataset demo_dataset(const std::filesystem::path& root) {
  Dataset dataset{root, layers, q_heads, k_heads, {}};
  for (std::int64_t layer = 0; layer < layers; ++layer)
    for (std::int64_t head = 0; head < q_heads; ++head)
      dataset.heads.push_back({layer, head, head / (q_heads / k_heads)});
  return dataset;
}

void write_demo(const Dataset& dataset, const PlasticityOptions& options) {
  for (const HeadId& head : dataset.heads) {
    write_queries(dataset, head, options.seed, is_isotropic(options));
    if (head.q_head % (q_heads / k_heads) == 0) write_keys(dataset, head, options.seed, is_isotropic(options));
  }
}

std::vector<DemoRow> compare_with_truth(const PlasticityResult& result) {
  const std::uint64_t seed = result.options.seed;
  const bool isotropic = is_isotropic(result.options);
  std::vector<DemoRow> rows;
  for (const HeadResult& head : result.heads) {
    const GroupTruth group = group_truth(head.id.layer, head.id.k_head, seed, isotropic);
    const HeadTruth truth = head_truth(head.id, group, seed);
    double sum = 0, weight = 0;
    for (const CellResult& cell : head.cells) {
      if (cell.n_pairs == 0) continue;
      const double cell_weight = isotropic ? 1.0 : static_cast<double>(std::int64_t{1} << cell.q_bucket);
      sum += cell_weight * cell_truth(cell, truth, group);
      weight += cell_weight;
    }
    rows.push_back({head.id, sum / weight, head.uncertainty.overall});
  }
  return rows;
}

}  // namespace headscope
