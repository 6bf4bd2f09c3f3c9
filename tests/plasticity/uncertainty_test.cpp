#include "plasticity/uncertainty.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plasticity/compare.h"

namespace headscope {
namespace {

// One key bucket per distance from query bucket 10, each with `examples` examples.
Keys keys_with(std::size_t buckets, std::size_t examples) {
  Keys keys;
  for (std::size_t b = 0; b < buckets; ++b) {
    KeyBucket bucket;
    bucket.bucket = static_cast<std::int64_t>(b);
    for (std::size_t e = 0; e < examples; ++e) bucket.examples.push_back({static_cast<std::int64_t>(100 + e), {0, 1}});
    keys.buckets.push_back(bucket);
  }
  return keys;
}

// Cells (10, b) whose example e has one pair of the given value.
Cell cell_of(std::size_t bucket, const std::vector<double>& values, double weight) {
  Cell cell;
  cell.q_bucket = 10;
  cell.k_bucket = static_cast<std::int64_t>(bucket);
  cell.key_bucket_index = bucket;
  cell.weight = weight;
  double sum = 0, squares = 0;
  for (std::size_t e = 0; e < values.size(); ++e) {
    cell.examples.push_back({static_cast<std::uint32_t>(e), values[e], 1});
    sum += values[e];
    ++cell.n_pairs;
  }
  const auto n = static_cast<double>(values.size());
  cell.plasticity = values.empty() ? missing : sum / n;
  for (const double value : values) squares += (value - sum / n) * (value - sum / n);
  cell.se_pairs = std::sqrt(squares / (n - 1) / n);
  return cell;
}

TEST(BootstrapWeight, IsPoissonOfMeanOne) {
  const int draws = 100000;
  std::vector<int> count(8);
  for (int i = 0; i < draws; ++i) {
    const double weight = bootstrap_weight(5, i / 100, static_cast<std::uint64_t>(i % 100));
    ++count[std::min<std::size_t>(static_cast<std::size_t>(weight), 7)];
  }
  double probability = std::exp(-1.0);
  for (std::size_t w = 0; w < 5; ++w) {
    // five standard deviations of a binomial count
    EXPECT_NEAR(count[w], draws * probability, 5 * std::sqrt(draws * probability));
    probability /= static_cast<double>(w + 1);
  }
}

TEST(Uncertainty, ExampleErrorOfAMeanIsTheTextbookOne) {
  std::vector<double> values;
  for (int e = 0; e < 400; ++e) values.push_back(0.5 + 0.3 * std::sin(e * 1.7));
  const Keys keys = keys_with(1, values.size());
  std::vector<Cell> cells = {cell_of(0, values, 1)};
  const HeadUncertainty result = estimate_uncertainty(cells, keys, 1, 4000);
  // One pair an example: both errors estimate sd / sqrt(n). A spread of 4,000 replicates is known to 1.1 %; bound at 5
  // %.
  EXPECT_NEAR(result.overall.se_examples / result.overall.se_pairs, 1.0, 0.05);
  EXPECT_NEAR(cells[0].se_examples, result.overall.se_examples, 1e-15);
  EXPECT_NEAR(result.overall.high() - result.overall.low(), 2 * 1.959963984540054 * result.overall.se_examples, 1e-15);
}

TEST(Uncertainty, SharedExamplesMakeCellsGoTogether) {
  std::vector<double> values, opposite;
  for (int e = 0; e < 100; ++e) {
    values.push_back(0.5 + 0.4 * std::sin(e * 1.7));
    opposite.push_back(1 - values.back());
  }
  const Keys keys = keys_with(2, 100);
  const auto error_of = [&](std::vector<Cell> cells) {
    return estimate_uncertainty(cells, keys, 1, 500).overall.se_examples;
  };
  const double same = error_of({cell_of(0, values, 1), cell_of(1, values, 1)});
  const double mirrored = error_of({cell_of(0, values, 1), cell_of(1, opposite, 1)});
  const double alone = error_of({cell_of(0, values, 1)});
  EXPECT_NEAR(same, alone, 1e-12);  // the same noise twice does not average out
  EXPECT_NEAR(mirrored, 0, 1e-12);  // opposite noise cancels exactly
}

TEST(Uncertainty, NearAndFarAreTheFifthsOfDistance) {
  const Keys keys = keys_with(10, 3);
  std::vector<Cell> cells;
  for (std::size_t b = 0; b < 10; ++b) {
    const double value = 0.1 * static_cast<double>(b);
    cells.push_back(cell_of(b, {value, value, value}, 1));
  }
  const HeadUncertainty result = estimate_uncertainty(cells, keys, 1, 50);
  EXPECT_NEAR(result.first_20.value, 0.85, 1e-15);  // buckets 9 and 8: the nearest
  EXPECT_NEAR(result.last_20.value, 0.05, 1e-15);   // buckets 0 and 1
  EXPECT_NEAR(result.drop.value, 0.8, 1e-15);
  EXPECT_NEAR(result.overall.value, 0.45, 1e-15);
}

TEST(Uncertainty, QueriesOfTheTextsDrawnMoveTheHeadsValue) {
  const Keys keys = keys_with(2, 3);
  std::vector<Cell> cells = {cell_of(0, {0.5, 0.5, 0.5}, 1), cell_of(1, {0.5, 0.5, 0.5}, 1)};
  TextSums from_queries;
  from_queries[100] = 0.03;  // a text that has keys, and one that has none
  from_queries[7] = -0.04;
  const HeadUncertainty fixed = estimate_uncertainty(cells, keys, 1, 4000);
  const HeadUncertainty result = estimate_uncertainty(cells, keys, 1, 4000, from_queries);
  EXPECT_NEAR(fixed.overall.se_examples, 0, 1e-15);
  // Root of the sum of squares, as Poisson(1) has variance 1. A spread of 4,000 replicates is known to some 1.5 %.
  EXPECT_NEAR(result.overall.se_examples, 0.05, 0.004);
  for (std::uint64_t r = 0; r < 100; ++r) {
    if (std::isnan(fixed.replicates[r])) continue;
    const double moved = 0.03 * (bootstrap_weight(1, 100, r) - 1) - 0.04 * (bootstrap_weight(1, 7, r) - 1);
    EXPECT_NEAR(result.replicates[r], fixed.replicates[r] + moved, 1e-15);
  }
  EXPECT_EQ(result.n_examples, 4);
  EXPECT_NE(result.examples_hash, fixed.examples_hash);
  EXPECT_NEAR(result.drop.se_examples, 0, 1e-15);  // holds the queries fixed
}

TEST(Uncertainty, OneExampleHasNoErrorOverExamples) {
  const Keys keys = keys_with(1, 1);
  std::vector<Cell> cells = {cell_of(0, {0.5}, 1)};
  const HeadUncertainty result = estimate_uncertainty(cells, keys, 1, 50);
  EXPECT_TRUE(std::isnan(result.overall.se_examples));
  EXPECT_EQ(result.n_examples, 1);
  EXPECT_TRUE(result.replicates.empty());
}

TEST(Uncertainty, NoCellHasNoValue) {
  std::vector<Cell> cells = {cell_of(0, {}, 1)};
  const HeadUncertainty result = estimate_uncertainty(cells, keys_with(1, 1), 1, 50);
  EXPECT_TRUE(std::isnan(result.overall.value));
  EXPECT_TRUE(std::isnan(result.drop.value));
}

TEST(FalseDiscoveries, TheWorkedExampleOfBenjaminiAndHochberg) {
  // Table of section 3.2 of their 1995 paper: 15 p-values, of which four are rejected at 0.05.
  std::vector<HeadDifference> heads;
  for (const double p : {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
                         0.6528, 0.7590, 1.0000}) {
    heads.emplace_back();
    heads.back().p_value = p;
  }
  std::reverse(heads.begin(), heads.end());
  control_false_discoveries(heads, 0.05);
  for (std::size_t i = 0; i < heads.size(); ++i) EXPECT_EQ(heads[i].significant, i >= 11) << heads[i].p_value;
}

}  // namespace
}  // namespace headscope
