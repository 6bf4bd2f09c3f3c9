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
    Eigen::Index size = 0;  // queries
  };
  using Counts = Eigen::Matrix<std::int32_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  BucketQueries(const CapturedVectors& captured, const Queries& queries, const QueryBucket& bucket);

  [[nodiscard]] const std::vector<Text>& texts() const { return texts_; }  // in order of first appearance

  // For each text and each row Δ of differences, as captured: twice the number of its queries with q·Δ > 0, plus the
  // number of those with q·Δ = 0. A tie counts one half: equal keys are a coin flip. The signs are those of float64.
  //   Most of them follow from whole numbers. Queries and differences are scaled to a length L < 2^15 and rounded. The
  // product of the rounded ones is less than L² and so exact in 32 bits. Rounding takes away vectors of length e and f,
  // each at most sqrt(d)/2, so that the product is off by at most L (e + f) + e f (Cauchy and Schwarz). A product
  // within that limit, for the largest e and f, is computed again in float64.
  [[nodiscard]] Counts count_halves(const RowMajorMatrix& delta_pd);  // texts x pairs

 private:
  [[nodiscard]] std::int32_t exact_halves(std::size_t query, const RowMajorMatrix& delta_pd, Eigen::Index pair) const;

  const CapturedVectors& captured_;
  std::vector<std::uint32_t> rows_;     // of the file, grouped by text
  std::vector<std::uint32_t> text_of_;  // of each of them, its place in texts_
  std::vector<Text> texts_;
  std::vector<std::int16_t> x_nd_;       // rounded; an odd d has a zero more
  double most_lost_ = 0;                 // the largest length that rounding took away
  std::vector<std::int16_t> packed_dp_;  // rounded differences
};

}  // namespace headscope
