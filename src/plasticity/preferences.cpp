#include "plasticity/preferences.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace headscope {
namespace {

constexpr Eigen::Index tile_rows = 512;  // queries whose products with 256 pairs stay in the second-level cache

// 2^-e with x in [2^(e-1), 2^e): the power of two that brings x into [1/2, 1).
double scale_of(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, -exponent);
}

template <class Scalar>
auto row_of(const std::vector<Scalar, UninitialisedAllocator<Scalar>>& vectors, std::size_t row, Eigen::Index dim) {
  return Eigen::Map<const Eigen::Matrix<Scalar, 1, Eigen::Dynamic>>(
      vectors.data() + row * static_cast<std::size_t>(dim), dim);
}

Eigen::RowVectorXd captured_row(const CapturedVectors& captured, std::size_t row) {
  const auto dim = static_cast<Eigen::Index>(captured.dim);
  if (captured.vector64.empty()) return row_of(captured.vector32, row, dim).cast<double>();
  return row_of(captured.vector64, row, dim);
}

}  // namespace

BucketQueries::BucketQueries(const CapturedVectors& captured, const Queries& queries, const QueryBucket& bucket)
    : captured_(captured) {
  std::unordered_map<std::int64_t, std::size_t> place;
  std::vector<std::vector<std::uint32_t>> rows_of_text;
  for (Eigen::Index i = bucket.begin; i < bucket.end; ++i) {
    const std::uint32_t row = queries.rows[static_cast<std::size_t>(i)];
    const auto [entry, is_new] = place.try_emplace(captured.example_id[row], texts_.size());
    if (is_new) {
      texts_.push_back({.example_id = captured.example_id[row]});
      rows_of_text.emplace_back();
    }
    rows_of_text[entry->second].push_back(row);
  }
  for (std::size_t text = 0; text < texts_.size(); ++text) {
    texts_[text].begin = std::ssize(rows_);
    rows_.insert(rows_.end(), rows_of_text[text].begin(), rows_of_text[text].end());
    texts_[text].end = std::ssize(rows_);
  }

  const Eigen::Index n = bucket.size();
  const auto d = static_cast<Eigen::Index>(captured.dim);
  Eigen::VectorXd length_n(n);
  for (Eigen::Index i = 0; i < n; ++i)
    length_n[i] = captured_row(captured, rows_[static_cast<std::size_t>(i)]).stableNorm();
  const double scale = scale_of(length_n.maxCoeff());
  x_nd_.resize(n, d);
  for (Eigen::Index i = 0; i < n; ++i)
    x_nd_.row(i) = (captured_row(captured, rows_[static_cast<std::size_t>(i)]) * scale).cast<float>();
  // Numbers below 2^-126 lose digits: each of three roundings of a term is then off by up to 2^-150. Rounding the limit
  // itself is covered by its last part, too.
  const double terms = static_cast<double>(d) + 4;
  limit_n_ = ((length_n.array() * scale * terms * 0x1p-24 * (1 + 0x1p-20)) + terms * 0x1p-140).cast<float>();
}

int BucketQueries::exact_halves(Eigen::Index query, const RowMajorMatrix& delta_pd, Eigen::Index pair) const {
  const double score = captured_row(captured_, rows_[static_cast<std::size_t>(query)]).dot(delta_pd.row(pair));
  return score > 0 ? 2 : score == 0 ? 1 : 0;
}

void BucketQueries::count_tile(Eigen::Index begin, const RowMajorMatrix& delta_pd) {
  const Eigen::Index end = std::min(begin + tile_rows, x_nd_.rows());
  scores_np_.topRows(end - begin).noalias() = x_nd_.middleRows(begin, end - begin) * scaled_pd_.transpose();
  const auto first = std::ranges::upper_bound(texts_, begin, {}, &Text::end);
  const float* limit = limit_n_.data();
  for (Eigen::Index p = 0; p < delta_pd.rows(); ++p) {
    if (scaled_pd_.row(p).isZero(0)) continue;  // equal keys: counted already
    const float* scores = scores_np_.col(p).data() - begin;
    for (auto text = first; text != texts_.end() && text->begin < end; ++text) {
      const Eigen::Index from = std::max(text->begin, begin), to = std::min(text->end, end);
      int above = 0, unsure = 0;
      for (Eigen::Index i = from; i < to; ++i) {
        above += scores[i] > limit[i] ? 1 : 0;
        unsure += std::abs(scores[i]) <= limit[i] ? 1 : 0;
      }
      int& halves = halves_tp_(text - texts_.begin(), p);
      halves += 2 * above;
      for (Eigen::Index i = from; unsure > 0 && i < to; ++i)
        if (std::abs(scores[i]) <= limit[i]) halves += exact_halves(i, delta_pd, p), --unsure;
    }
  }
}

const Eigen::MatrixXi& BucketQueries::count_halves(const RowMajorMatrix& delta_pd) {
  scaled_pd_.resize(delta_pd.rows(), delta_pd.cols());
  for (Eigen::Index p = 0; p < delta_pd.rows(); ++p)
    scaled_pd_.row(p) = (delta_pd.row(p) * scale_of(delta_pd.row(p).stableNorm())).cast<float>();
  halves_tp_.setZero(std::ssize(texts_), delta_pd.rows());
  for (Eigen::Index p = 0; p < delta_pd.rows(); ++p)
    for (Eigen::Index t = 0; t < halves_tp_.rows() && scaled_pd_.row(p).isZero(0); ++t)
      halves_tp_(t, p) = static_cast<int>(texts_[static_cast<std::size_t>(t)].size());
  scores_np_.resize(std::min(tile_rows, x_nd_.rows()), delta_pd.rows());
  for (Eigen::Index begin = 0; begin < x_nd_.rows(); begin += tile_rows) count_tile(begin, delta_pd);
  return halves_tp_;
}

}  // namespace headscope
