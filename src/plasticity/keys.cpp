#include "plasticity/keys.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

namespace headscope {
namespace {

// The unweighted mean over buckets of the mean vector of each bucket.
template <class Vectors>
Eigen::VectorXd mean_of_bucket_means(const Vectors& vectors, const CapturedVectors& keys, const RowLabels& labels) {
  struct Sum {
    Eigen::VectorXd total;
    std::int64_t count = 0;
  };
  std::map<std::int64_t, Sum> sums;
  const auto dim = static_cast<Eigen::Index>(keys.dim);
  for (std::size_t row = 0; row < keys.rows; ++row) {
    Sum& sum = sums[labels.bucket[row]];
    if (sum.count++ == 0) sum.total = Eigen::VectorXd::Zero(dim);
    using Scalar = typename Vectors::value_type;
    const Eigen::Map<const Eigen::Matrix<Scalar, Eigen::Dynamic, 1>> vector(vectors.data() + row * keys.dim, dim);
    sum.total += vector.template cast<double>();
  }
  Eigen::VectorXd mean = Eigen::VectorXd::Zero(dim);
  for (const auto& [bucket, sum] : sums) mean += sum.total / static_cast<double>(sum.count);
  return mean / static_cast<double>(sums.size());
}

KeyBucket group_by_example(const CapturedVectors& keys, const RowLabels& labels, std::int64_t number,
                           const std::vector<std::uint32_t>& rows) {
  KeyBucket bucket;
  bucket.bucket = number;
  std::unordered_map<std::int64_t, std::size_t> place;
  double position_sum = 0;
  for (const std::uint32_t row : rows) {
    position_sum += static_cast<double>(labels.position[row]);
    const auto [entry, is_new] = place.try_emplace(keys.example_id[row], bucket.examples.size());
    if (is_new) bucket.examples.push_back({keys.example_id[row], {}});
    bucket.examples[entry->second].rows.push_back(row);
  }
  bucket.mean_position = position_sum / static_cast<double>(rows.size());
  std::erase_if(bucket.examples, [](const ExampleKeys& example) { return example.rows.size() < 2; });
  std::int64_t total = 0;
  for (const ExampleKeys& example : bucket.examples) {
    const auto count = static_cast<std::int64_t>(example.rows.size());
    bucket.cumulative_pairs.push_back(total += count * (count - 1) / 2);
  }
  return bucket;
}

KeyGroups group(const CapturedVectors& keys, const RowLabels& labels, const std::vector<std::uint32_t>& used) {
  KeyGroups groups;
  groups.orientation_d = orientation(keys, labels);
  std::map<std::int64_t, std::vector<std::uint32_t>> rows_of_bucket;
  for (const std::uint32_t row : used) rows_of_bucket[labels.bucket[row]].push_back(row);
  for (const auto& [bucket, rows] : rows_of_bucket)
    groups.buckets.push_back(group_by_example(keys, labels, bucket, rows));
  return groups;
}

template <class Scalar>
void subtract(const Scalar* vectors, const std::vector<KeyPair>& pairs, RowMajorMatrix& delta_pd) {
  const auto dim = static_cast<std::size_t>(delta_pd.cols());
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    const Scalar* first = vectors + pairs[p].first * dim;
    const Scalar* second = vectors + pairs[p].second * dim;
    double* out = delta_pd.row(static_cast<Eigen::Index>(p)).data();
    for (std::size_t i = 0; i < dim; ++i) out[i] = static_cast<double>(first[i]) - static_cast<double>(second[i]);
  }
}

}  // namespace

std::vector<std::uint32_t> sample_rows(std::size_t rows, std::int64_t max_rows, std::uint64_t seed) {
  std::vector<std::uint32_t> used;
  if (static_cast<std::int64_t>(rows) > max_rows) {
    const auto drawn = NumpyGenerator(seed).choice(static_cast<std::int64_t>(rows), max_rows);
    used.assign(drawn.begin(), drawn.end());
  } else {
    used.resize(rows);
    std::iota(used.begin(), used.end(), 0U);
  }
  return used;
}

Eigen::VectorXd orientation(const CapturedVectors& keys, const RowLabels& labels) {
  const Eigen::VectorXd mean = keys.vector64.empty() ? mean_of_bucket_means(keys.vector32, keys, labels)
                                                     : mean_of_bucket_means(keys.vector64, keys, labels);
  return mean.unaryExpr([](double value) { return value < 0 ? -1.0 : 1.0; });
}

Keys prepare_keys(CapturedVectors captured, std::int64_t max_rows, std::uint64_t seed) {
  const std::vector<std::uint32_t> used = sample_rows(captured.rows, max_rows, seed);
  Keys keys{group(captured, labels_of(captured), used), {}, static_cast<std::int64_t>(used.size()), {}};
  keys.captured = std::move(captured);
  return keys;
}

void shuffle_keys(Keys& keys, std::int64_t max_rows, std::uint64_t seed, NumpyGenerator generator) {
  const ShuffledLabels labels(keys.captured, generator);
  keys.shuffled = group(keys.captured, labels.view(), sample_rows(keys.captured.rows, max_rows, seed));
}

void draw_pairs(const KeyBucket& bucket, std::int64_t most, NumpyGenerator& generator, std::vector<KeyPair>& pairs) {
  const std::int64_t total = bucket.total_pairs();
  const auto& cumulative = bucket.cumulative_pairs;
  pairs.clear();
  for (std::int64_t i = 0; i < std::min(most, total); ++i) {
    const auto drawn = static_cast<std::int64_t>(generator.integers(static_cast<std::uint64_t>(total)));
    const auto example = std::upper_bound(cumulative.begin(), cumulative.end(), drawn) - cumulative.begin();
    const std::vector<std::uint32_t>& rows = bucket.examples[static_cast<std::size_t>(example)].rows;
    const auto [first, second] = generator.choice_pair(static_cast<std::int64_t>(rows.size()));
    pairs.push_back({rows[static_cast<std::size_t>(first)], rows[static_cast<std::size_t>(second)],
                     static_cast<std::uint32_t>(example)});
  }
}

void key_differences(const CapturedVectors& keys, const std::vector<KeyPair>& pairs, RowMajorMatrix& delta_pd) {
  delta_pd.resize(static_cast<Eigen::Index>(pairs.size()), static_cast<Eigen::Index>(keys.dim));
  if (keys.vector64.empty())
    subtract(keys.vector32.data(), pairs, delta_pd);
  else
    subtract(keys.vector64.data(), pairs, delta_pd);
}

}  // namespace headscope
