#include "plasticity/preferences.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "plasticity/whole_products.h"

namespace headscope {
namespace {

template <class Scalar>
auto row_of(const std::vector<Scalar, UninitialisedAllocator<Scalar>>& vectors, std::size_t row, std::size_t dim) {
  return Eigen::Map<const Eigen::Matrix<Scalar, 1, Eigen::Dynamic>>(vectors.data() + row * dim,
                                                                    static_cast<Eigen::Index>(dim))
      .template cast<double>();
}

// Scaled so that its rounded form has a length of at most longest_row; zeros, whose products are within any limit,
// where no number does that. Returns a bound of the length of what rounding took away, and of what float64 rounds.
template <class Row>
double round_row(const Row& row, std::int16_t* out) {
  const double half = std::sqrt(static_cast<double>(row.size())) / 2, squared = row.squaredNorm();
  const bool in_range = squared > 1e-280 && squared < 1e280;  // no square was lost
  const double scale = (longest_row - half) / (in_range ? std::sqrt(squared) : row.stableNorm());
  if (!std::isfinite(scale)) {
    std::fill_n(out, row.size(), std::int16_t{0});
    return 0;
  }
  double squares = 0;
  for (Eigen::Index i = 0; i < row.size(); ++i) {
    const double scaled = row[i] * scale, rounded = std::nearbyint(scaled);
    out[i] = static_cast<std::int16_t>(rounded);
    squares += (scaled - rounded) * (scaled - rounded);
  }
  return std::sqrt(squares) + 1e-6;
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
    ++texts_[entry->second].size;
    rows_of_text[entry->second].push_back(row);
  }
  for (std::size_t text = 0; text < texts_.size(); ++text) {
    rows_.insert(rows_.end(), rows_of_text[text].begin(), rows_of_text[text].end());
    text_of_.resize(rows_.size(), static_cast<std::uint32_t>(text));
  }
  const std::size_t width = even_width(captured.dim);
  x_nd_.resize(rows_.size() * width);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    std::int16_t* const out = x_nd_.data() + i * width;
    most_lost_ = std::max(most_lost_, captured.vector64.empty()
                                          ? round_row(row_of(captured.vector32, rows_[i], captured.dim), out)
                                          : round_row(row_of(captured.vector64, rows_[i], captured.dim), out));
  }
}

std::int32_t BucketQueries::exact_halves(std::size_t query, const RowMajorMatrix& delta_pd, Eigen::Index pair) const {
  const std::size_t row = rows_[query];
  const double score = captured_.vector64.empty()
                           ? row_of(captured_.vector32, row, captured_.dim).dot(delta_pd.row(pair))
                           : row_of(captured_.vector64, row, captured_.dim).dot(delta_pd.row(pair));
  return score > 0 ? 2 : score == 0 ? 1 : 0;
}

BucketQueries::Counts BucketQueries::count_halves(const RowMajorMatrix& delta_pd) {
  const auto pairs = static_cast<std::size_t>(delta_pd.rows());
  const std::size_t width = even_width(captured_.dim);
  std::vector<std::int16_t> rounded_pd(pairs * width);
  double lost = 0;
  for (std::size_t p = 0; p < pairs; ++p)
    lost = std::max(lost, round_row(delta_pd.row(static_cast<Eigen::Index>(p)), rounded_pd.data() + p * width));
  pack_columns(rounded_pd, width, packed_dp_);
  const std::size_t padded = packed_dp_.size() / width;
  Counts halves_tp = Counts::Zero(std::ssize(texts_), static_cast<Eigen::Index>(padded));
  std::vector<bool> equal(padded, true);  // also the columns that pack_columns adds
  for (std::size_t p = 0; p < pairs; ++p) equal[p] = delta_pd.row(static_cast<Eigen::Index>(p)).isZero(0);

  const auto limit = static_cast<std::int32_t>(std::ceil(longest_row * (most_lost_ + lost) + most_lost_ * lost));
  count_above(x_nd_, packed_dp_, width, limit, text_of_, halves_tp.data(), [&](std::size_t query, std::size_t pair) {
    if (!equal[pair])
      halves_tp(static_cast<Eigen::Index>(text_of_[query]), static_cast<Eigen::Index>(pair)) +=
          exact_halves(query, delta_pd, static_cast<Eigen::Index>(pair));
  });
  for (std::size_t p = 0; p < pairs; ++p)
    for (std::size_t t = 0; equal[p] && t < texts_.size(); ++t)
      halves_tp(static_cast<Eigen::Index>(t), static_cast<Eigen::Index>(p)) = static_cast<std::int32_t>(texts_[t].size);
  return halves_tp.leftCols(delta_pd.rows());
}

}  // namespace headscope
