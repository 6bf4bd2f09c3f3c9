#include "plasticity/demo.h"

#include <Eigen/QR>
#include <cmath>
#include <numbers>

#include "core/random.h"
#include "formats/captured_vectors.h"
#include "stats/distributions.h"

namespace headscope {
namespace {

constexpr std::int64_t demo_layers = 2, demo_q_heads = 4, demo_k_heads = 2;
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

// The distributions behind one head. Query heads that share a key head share all but offset and slope.
struct Truth {
  Eigen::MatrixXd axes_dd;               // eigenvectors of the query covariance; positions drift along the first
  Eigen::VectorXd deviation_d;           // square roots of its eigenvalues
  std::vector<Eigen::MatrixXd> keys_dr;  // for each key bucket: whitened directions in which keys vary
  Eigen::VectorXd offset_d, slope_d;     // the mean of the queries at position t is offset + slope t
};

// Heads differ in how far their mean lies from zero and how fast it drifts, from nearly undecided to nearly fixed.
Truth truth_of(const HeadId& head, const PlasticityOptions& options) {
  Truth truth;
  Gaussian shared(options.seed + 1000 + static_cast<std::uint64_t>(head.layer * demo_k_heads + head.k_head));
  truth.axes_dd = orthonormal(shared.matrix(demo_dim, demo_dim));
  truth.deviation_d = options.variant == Variant::diagonal
                          ? Eigen::VectorXd::Ones(demo_dim)
                          : Eigen::VectorXd(shared.matrix(demo_dim, 1).array().abs() + 0.5);
  for (int bucket = 0; bucket < demo_buckets; ++bucket)
    truth.keys_dr.push_back(orthonormal(shared.matrix(demo_dim, key_rank)));
  const auto index = static_cast<double>(head.layer * demo_q_heads + head.q_head);
  Gaussian own(options.seed + 2000 + static_cast<std::uint64_t>(index));
  truth.offset_d = own.matrix(demo_dim, 1) * (0.1 + 0.5 * index);
  truth.slope_d = truth.axes_dd.col(0) * (1.0 + 1.5 * static_cast<double>(head.q_head)) / static_cast<double>(length);
  return truth;
}

// vector(position, bucket) at every position of every example, so that the mean position of a bucket is known.
template <class Vector>
CapturedVectors every_position(Vector vector) {
  CapturedVectors captured;
  captured.dim = static_cast<std::size_t>(demo_dim);
  captured.vector32.resize(static_cast<std::size_t>(examples * (length - 1) * demo_dim));
  for (std::int64_t example = 0; example < examples; ++example)
    for (std::int64_t position = 0; position + 1 < length; ++position) {
      const auto bucket = static_cast<std::int64_t>(std::floor(std::log2(static_cast<double>(position) + 1)));
      captured.example_id.push_back(example);
      captured.position.push_back(position);
      captured.bucket.push_back(bucket);
      Eigen::Map<Eigen::VectorXf>(captured.vector32.data() + captured.rows++ * captured.dim, demo_dim) =
          vector(position, static_cast<std::size_t>(bucket)).template cast<float>();
    }
  return captured;
}

Gaussian noise(const PlasticityOptions& options, std::int64_t layer, std::int64_t head, bool keys) {
  return Gaussian(options.seed + 3000 + static_cast<std::uint64_t>(2 * (layer * demo_q_heads + head) + (keys ? 1 : 0)));
}

CapturedVectors demo_queries(const HeadId& head, const PlasticityOptions& options) {
  const Truth truth = truth_of(head, options);
  Gaussian gaussian = noise(options, head.layer, head.q_head, false);
  const Eigen::MatrixXd colour_dd = truth.axes_dd * truth.deviation_d.asDiagonal();
  return every_position([&](std::int64_t position, std::size_t) -> Eigen::VectorXd {
    return truth.offset_d + truth.slope_d * static_cast<double>(position) + colour_dd * gaussian.matrix(demo_dim, 1);
  });
}

CapturedVectors demo_keys(const HeadId& head, const PlasticityOptions& options) {
  const Truth truth = truth_of(head, options);
  Gaussian gaussian = noise(options, head.layer, head.k_head, true);
  const Eigen::VectorXd centre_d = gaussian.matrix(demo_dim, 1);
  const Eigen::MatrixXd spread_dd = truth.axes_dd * truth.deviation_d.cwiseInverse().asDiagonal();
  return every_position([&](std::int64_t, std::size_t bucket) -> Eigen::VectorXd {
    return centre_d + spread_dd * (truth.keys_dr[bucket] * gaussian.matrix(key_rank, 1));
  });
}

double mean_position(std::int64_t bucket) {
  const auto first = static_cast<double>((std::int64_t{1} << bucket) - 1);
  return first + (static_cast<double>(std::int64_t{1} << bucket) - 1) / 2;
}

// z = Δ·m / sqrt(Δᵀ Σ Δ); with Δ = Σ^(-1/2) B y, y isotropic in three dimensions, z = |Bᵀ Σ^(-1/2) m| cos(angle).
double cell_truth(const CellResult& cell, const Truth& truth) {
  const Eigen::VectorXd mean_d = truth.offset_d + truth.slope_d * mean_position(cell.q_bucket);
  const Eigen::VectorXd white_d = (truth.axes_dd.transpose() * mean_d).cwiseQuotient(truth.deviation_d);
  return plasticity_of_uniform((truth.keys_dr[static_cast<std::size_t>(cell.k_bucket)].transpose() * white_d).norm());
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
  return dataset_of_model(root, demo_layers, demo_q_heads, demo_k_heads, {});
}

void write_demo(const Dataset& dataset, const PlasticityOptions& options) {
  for (const HeadId& head : dataset.heads) {
    write_captured_vectors(dataset.query_file(head), demo_queries(head, options));
    if (head.q_head % (demo_q_heads / demo_k_heads) == 0)
      write_captured_vectors(dataset.key_file(head), demo_keys(head, options));
  }
}

std::vector<DemoRow> compare_with_truth(const PlasticityResult& result) {
  std::vector<DemoRow> rows;
  for (const HeadResult& head : result.heads) {
    const Truth truth = truth_of(head.id, result.options);
    double sum = 0, weight = 0;
    for (const CellResult& cell : head.cells) {
      if (cell.n_pairs == 0) continue;
      const bool equal_weights = result.options.variant == Variant::diagonal;
      const double cell_weight = equal_weights ? 1.0 : static_cast<double>(std::int64_t{1} << cell.q_bucket);
      sum += cell_weight * cell_truth(cell, truth);
      weight += cell_weight;
    }
    rows.push_back({head.id, sum / weight, head.uncertainty.overall});
  }
  return rows;
}

}  // namespace headscope
