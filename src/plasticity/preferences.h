// Which of two keys the captured queries prefer, by counting them: no model of the queries is involved.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "formats/captured_vectors.h"
#include "plasticity/queries.h"
#include "stats/householder.h"

namespace headscope {

// The queries of one bucket, grouped by text.
class BucketQueries {
 public:
  struct Text {
    std::int64_t example_id = 0;
    Eigen::Index begin = 0, end = 0;  // in the order of the group
    [[nodiscard]] Eigen::Index size() const { return end - begin; }
  };

  BucketQueries(const CapturedVectors& captured, const Queries& queries, const QueryBucket& bucket);

  [[nodiscard]] const std::vector<Text>& texts() const { return texts_; }  // in order of first appearance

  // For each text and each row Δ of differences, as captured: twice the number of its queries with q·Δ > 0, plus the
  // number of those with q·Δ = 0. A tie counts one half: equal keys are a coin flip. The signs are those of float64.
  //   The products are computed in float32. With u = 2^-24, rounding q and Δ and adding up d products in any order
  // gives an error of at most (d + 2) u / (1 - (d + 2) u) |q| |Δ| (Higham 2002, section 3.1, and Cauchy and Schwarz).
  // A product within (d + 4) u |q| |Δ|, which holds the error of float64, too, is computed again in float64.
  [[nodiscard]] const Eigen::MatrixXi& count_halves(const RowMajorMatrix& delta_pd);  // texts x pairs

 private:
  using FloatRows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  void count_tile(Eigen::Index begin, const RowMajorMatrix& delta_pd);
  [[nodiscard]] int exact_halves(Eigen::Index query, const RowMajorMatrix& delta_pd, Eigen::Index pair) const;

  const CapturedVectors& captured_;
  std::vector<std::uint32_t> rows_;  // of the file, grouped by text
  std::vector<Text> texts_;
  FloatRows x_nd_;           // scaled by a power of two: the longest has a length in [1/2, 1)
  Eigen::VectorXf limit_n_;  // below it, the sign of a product with a Δ of length up to 1 is not known
  FloatRows scaled_pd_;      // each Δ by a power of two of its own: lengths in [1/2, 1)
  Eigen::MatrixXf scores_np_;
  Eigen::MatrixXi halves_tp_;
};

}  // namespace headscope
