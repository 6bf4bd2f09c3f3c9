#include "plasticity/aggregates.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "figures/synthetic.h"

namespace headscope {
namespace {

const double nan_value = std::nan("");

// Two heads of two layers, three buckets; the second head has no pairs in cell (1, 0).
PlasticityTables small() {
  PlasticityTables tables;
  tables.heads.add("layer", Integers{1, 0}).add("q_head", Integers{3, 2}).add("ap_overall", Numbers{0.9, 0.4});
  tables.cells.add("layer", Integers{0, 0, 0, 1, 1, 1}).add("q_head", Integers{2, 2, 2, 3, 3, 3});
  tables.cells.add("q_bucket", Integers{1, 2, 2, 1, 2, 2}).add("k_bucket", Integers{0, 0, 1, 0, 0, 1});
  tables.cells.add("plasticity", Numbers{0.2, 0.4, 0.6, nan_value, 0.8, 1.0});
  tables.components.add("layer", Integers{0, 0, 1, 1}).add("q_head", Integers{2, 2, 3, 3});
  tables.components.add("component", Integers{0, 1, 0, 1}).add("weight", Numbers{0.25, 0.75, 1.0, 0.0});
  return tables;
}

TEST(HeadPlasticity, IsInOrderOfLayerWithIntervalsByName) {
  PlasticityTables tables = small();
  tables.uncertainty = Table("uncertainty");
  tables.uncertainty->add("layer", Integers{1, 7}).add("q_head", Integers{3, 7});
  tables.uncertainty->add("low", Numbers{0.8, 0}).add("high", Numbers{0.95, 1});
  const auto heads = head_plasticity(tables);
  ASSERT_EQ(heads.size(), 2u);
  EXPECT_EQ(heads[0].layer, 0);
  EXPECT_EQ(heads[0].value, 0.4);
  EXPECT_TRUE(std::isnan(heads[0].low));
  EXPECT_EQ(heads[1].q_head, 3);
  EXPECT_EQ(heads[1].low, 0.8);
  EXPECT_EQ(heads[1].high, 0.95);
}

TEST(MeanOverHeads, IsThePlainMeanOfHeadsThatHaveAValue) {
  const auto means = mean_over_heads(bucket_cells(small()));
  ASSERT_EQ(means.size(), 3u);
  EXPECT_EQ(means[0].value, 0.2);
  EXPECT_EQ(means[0].n_heads, 1);
  EXPECT_NEAR(means[1].value, (0.4 + 0.8) / 2, 1e-15);
  EXPECT_NEAR(means[2].value, (0.6 + 1.0) / 2, 1e-15);
  EXPECT_EQ(means[2].q_bucket, 2);
  EXPECT_EQ(means[2].k_bucket, 1);
}

TEST(MeanOverHeads, KeepsCellsThatNoHeadHas) {
  BucketCell cell{.layer = 0, .q_head = 0, .q_bucket = 1, .k_bucket = 0};
  const auto means = mean_over_heads({cell});
  ASSERT_EQ(means.size(), 1u);
  EXPECT_TRUE(std::isnan(means[0].value));
  EXPECT_EQ(means[0].n_heads, 0);
}

// Cell (3, 0) is that of one head in five; layer 1 has a window and no cell (2, 0).
TEST(MeanOverHeads, LeavesOutWhatFewHeadsHave) {
  std::vector<BucketCell> cells;
  for (std::int64_t head = 0; head < 5; ++head) {
    cells.push_back({.layer = 0, .q_head = head, .q_bucket = 1, .k_bucket = 0, .value = 0.5});
    cells.push_back({.layer = 0, .q_head = head, .q_bucket = 2, .k_bucket = 0, .value = 0.7});
    for (std::int64_t layer = 1; layer < 4; ++layer)
      cells.push_back({.layer = layer, .q_head = head, .q_bucket = 1, .k_bucket = 0, .value = 0.5});
  }
  cells.push_back({.layer = 0, .q_head = 2, .q_bucket = 3, .k_bucket = 0, .value = 0.1});
  const auto means = mean_over_heads(cells);
  ASSERT_EQ(means.size(), 2u);
  EXPECT_EQ(means[0].n_heads, 20);
  EXPECT_EQ(means[1].q_bucket, 2);  // every head of its layer has it
  EXPECT_EQ(means[1].n_heads, 5);
  const auto distances = plasticity_by_distance(cells);
  ASSERT_EQ(distances.size(), 2u);
  EXPECT_EQ(distances[1].distance, 2);
  for (const LayerDistance& layer : layer_plasticity_by_distance(cells)) EXPECT_LT(layer.distance, 3);
}

TEST(PlasticityByDistance, AveragesWithinAHeadThenOverHeads) {
  const auto distances = plasticity_by_distance(bucket_cells(small()));
  ASSERT_EQ(distances.size(), 2u);
  // Distance 1: head one (0.2 + 0.6) / 2 = 0.4, head two 1.0; quartiles of two values lie a quarter inside.
  EXPECT_NEAR(distances[0].mean, 0.7, 1e-15);
  EXPECT_NEAR(distances[0].low, 0.55, 1e-15);
  EXPECT_NEAR(distances[0].high, 0.85, 1e-15);
  EXPECT_NEAR(distances[1].mean, 0.6, 1e-15);
  const auto layers = layer_plasticity_by_distance(bucket_cells(small()));
  ASSERT_EQ(layers.size(), 4u);
  EXPECT_EQ(layers[3].layer, 1);
  EXPECT_EQ(layers[3].distance, 2);
  EXPECT_EQ(layers[3].mean, 0.8);
}

TEST(Components, EffectiveNumberIsTheExponentialOfTheEntropy) {
  const auto heads = effective_components(small());
  ASSERT_EQ(heads.size(), 2u);
  // Closed form for (1/4, 3/4): 4 / 3^(3/4).
  EXPECT_NEAR(heads[0].value, 4 / std::pow(3, 0.75), 1e-14);
  EXPECT_EQ(heads[1].value, 1);
}

TEST(Components, SharesAddUpFromTheHeaviest) {
  const auto shares = cumulative_component_share(small());
  ASSERT_EQ(shares.size(), 4u);
  EXPECT_EQ(shares[0].share, 0.75);
  EXPECT_EQ(shares[1].share, 1);
  EXPECT_EQ(shares[2].share, 1);
}

TEST(Components, SharesOfALayerAreTheMeanOfItsHeads) {
  PlasticityTables tables = small();
  tables.components = Table("components");
  tables.components.add("layer", Integers{0, 0, 0, 0}).add("q_head", Integers{0, 0, 1, 1});
  tables.components.add("component", Integers{0, 1, 0, 1}).add("component_weight", Numbers{0.5, 0.5, 0.1, 0.9});
  const auto shares = cumulative_component_share(tables);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_NEAR(shares[0].share, (0.5 + 0.9) / 2, 1e-15);
  EXPECT_NEAR(shares[1].share, 1, 1e-15);
}

TEST(Quartiles, AreLinearBetweenOrderStatistics) {
  // numpy.quantile([1, 2, 3, 4, 10], [.25, .5, .75]) and of [1, 2, 3, 4]
  const Quartiles five = quartiles({10, 2, nan_value, 4, 1, 3});
  EXPECT_EQ(five.low, 2);
  EXPECT_EQ(five.median, 3);
  EXPECT_EQ(five.high, 4);
  const Quartiles four = quartiles({1, 2, 3, 4});
  EXPECT_EQ(four.low, 1.75);
  EXPECT_EQ(four.median, 2.5);
  EXPECT_EQ(four.high, 3.25);
  EXPECT_TRUE(std::isnan(quartiles({nan_value}).median));
}

TEST(SpreadByLayer, LeavesOutLayersWithoutValues) {
  const auto layers = spread_by_layer({{0, 0, 0.5}, {0, 1, nan_value}, {1, 0, nan_value}, {2, 0, 0.1}, {2, 1, 0.3}});
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[0].n_heads, 1);
  EXPECT_EQ(layers[1].layer, 2);
  EXPECT_NEAR(layers[1].median, 0.2, 1e-15);
}

TEST(Tables, OfTheDiagonalVariantGiveTheSame) {
  const auto seed = synthetic::tables({.missing = 0.2});
  const auto diagonal = synthetic::tables({.missing = 0.2, .diagonal = true});
  const auto one = mean_over_heads(bucket_cells(seed));
  const auto two = mean_over_heads(bucket_cells(diagonal));
  ASSERT_EQ(one.size(), two.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].n_heads, two[i].n_heads);
    EXPECT_TRUE(one[i].n_heads == 0 || one[i].value == two[i].value) << i;
  }
  EXPECT_EQ(effective_components(seed).front().value, effective_components(diagonal).front().value);
}

TEST(Tables, WithoutAColumnAreAnInputError) {
  PlasticityTables tables = small();
  tables.heads = Table("head_metrics.csv");
  tables.heads.add("layer", Integers{0}).add("q_head", Integers{0});
  try {
    head_plasticity(tables);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::input);
    EXPECT_NE(std::string(error.what()).find("ap_overall"), std::string::npos);
  }
}

}  // namespace
}  // namespace headscope
