#include "plasticity/keys.h"

#include <gtest/gtest.h>

#include <map>

namespace headscope {
namespace {

CapturedVectors captured(std::vector<std::int64_t> bucket, std::vector<std::int64_t> example,
                         std::vector<float> first_component) {
  CapturedVectors vectors;
  vectors.rows = bucket.size();
  vectors.dim = 2;
  vectors.bucket = std::move(bucket);
  vectors.example_id = std::move(example);
  vectors.position.assign(vectors.rows, 5);
  for (const float value : first_component) {
    vectors.vector32.push_back(value);
    vectors.vector32.push_back(0);
  }
  return vectors;
}

Eigen::VectorXd orient(std::vector<std::int64_t> bucket, std::vector<std::int64_t> example,
                       std::vector<float> first_component) {
  const CapturedVectors keys = captured(std::move(bucket), std::move(example), std::move(first_component));
  return orientation(keys, labels_of(keys));
}

TEST(Orientation, IsTheSignOfTheMeanOfBucketMeansNotOfAllRows) {
  // Bucket 0 has mean -1 from three rows, bucket 1 mean +2 from one row: the mean over buckets is positive, over rows
  // negative.
  const Eigen::VectorXd sign = orient({0, 0, 0, 1}, {0, 0, 0, 0}, {-1, -1, -1, 2});
  EXPECT_EQ(sign[0], 1);
  EXPECT_EQ(sign[1], 1);  // sign 0 counts as +1
  EXPECT_EQ(orient({0, 1}, {0, 0}, {-3, 2})[0], -1);
}

TEST(Keys, CandidatesAreExamplesWithTwoKeysInOrderOfFirstAppearance) {
  const Keys keys = prepare_keys(captured({1, 1, 0, 1, 1, 1}, {7, 3, 7, 9, 3, 7}, {1, 1, 1, 1, 1, 1}), 100, 0);
  ASSERT_EQ(keys.buckets.size(), 2U);
  EXPECT_TRUE(keys.buckets[0].examples.empty());  // one key
  EXPECT_EQ(keys.buckets[0].total_pairs(), 0);
  const KeyBucket& bucket = keys.buckets[1];
  ASSERT_EQ(bucket.examples.size(), 2U);  // example 9 has one key
  EXPECT_EQ(bucket.examples[0].example_id, 7);
  EXPECT_EQ(bucket.examples[0].rows, (std::vector<std::uint32_t>{0, 5}));
  EXPECT_EQ(bucket.examples[1].rows, (std::vector<std::uint32_t>{1, 4}));
  EXPECT_EQ(bucket.cumulative_pairs, (std::vector<std::int64_t>{1, 2}));
}

TEST(Pairs, AreOfOneExampleAndAllPairsAreEquallyLikely) {
  // Examples with 2, 3 and 4 keys: 1 + 3 + 6 = 10 pairs.
  const Keys keys = prepare_keys(
      captured({0, 0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 1, 1, 1, 2, 2, 2, 2}, std::vector<float>(9, 1)), 100, 0);
  NumpyGenerator generator(3);
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> count;
  std::vector<KeyPair> pairs;
  const int draws = 20000;
  for (int i = 0; i < draws / 10; ++i) {
    draw_pairs(keys.buckets[0], 256, generator, pairs);
    ASSERT_EQ(pairs.size(), 10U);  // no more than there are
    for (const KeyPair& pair : pairs) {
      ASSERT_NE(pair.first, pair.second);
      ASSERT_EQ(keys.captured.example_id[pair.first], keys.captured.example_id[pair.second]);
      ASSERT_EQ(keys.captured.example_id[pair.first], keys.buckets[0].examples[pair.example].example_id);
      ++count[std::minmax(pair.first, pair.second)];
    }
  }
  EXPECT_EQ(count.size(), 10U);
  // Chi-square with 9 degrees of freedom: 27.9 is exceeded once in a thousand; the seed is fixed.
  double chi_square = 0;
  for (const auto& [pair, seen] : count) chi_square += (seen - draws / 10.0) * (seen - draws / 10.0) / (draws / 10.0);
  EXPECT_LT(chi_square, 27.9);
}

}  // namespace
}  // namespace headscope
