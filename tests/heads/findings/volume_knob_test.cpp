#include "heads/findings/volume_knob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "heads/findings/planted.h"

namespace headscope {
namespace {

using test::plant;
using test::run_of;
using test::tracks_of;
using ::testing::HasSubstr;

// Norms grow from 8 by these factors; heads scatter by 1 % about them.
VolumeKnobFinding grown_by(double keys, double queries, HeadCounts counts = {3, 2, 4}) {
  Tracks tracks = tracks_of(counts, 3);
  const auto grow = [](double factor) {
    return [factor](std::size_t moment, std::int64_t layer, std::int64_t head) {
      return moment < 2 ? 8 : 8 * factor * std::pow(1.01, (layer + head) % 2 == 0 ? 1 : -1);
    };
  };
  plant(tracks, "k_norm", grow(keys));
  plant(tracks, "q_norm", grow(queries));
  plant(tracks, "qk_ratio", grow(queries / keys));
  return find_volume_knob(run_of(tracks));
}

TEST(VolumeKnob, IsWhatGrows) {
  EXPECT_EQ(grown_by(1.5, 1).knob, VolumeKnob::keys);
  EXPECT_EQ(grown_by(1, 1.5).knob, VolumeKnob::queries);
  EXPECT_EQ(grown_by(1.5, 1.5).knob, VolumeKnob::both);
  EXPECT_EQ(grown_by(1, 1).knob, VolumeKnob::neither);
  EXPECT_EQ(grown_by(0.5, 0.5).knob, VolumeKnob::neither);
}

TEST(VolumeKnob, IsBothOnlyWhenBothHaveGrown) {
  EXPECT_EQ(grown_by(1.1002, 1.1002).knob, VolumeKnob::both);
  EXPECT_EQ(grown_by(1.0998, 1.1002).knob, VolumeKnob::queries);
  EXPECT_EQ(grown_by(1.1002, 1.0998).knob, VolumeKnob::keys);
  EXPECT_EQ(grown_by(1.05, 1.2).knob, VolumeKnob::queries);
}

// Scores grow with the product of the norms: 1.2 * 0.68 = 0.816.
TEST(VolumeKnob, IsNeitherWhereTheProductDidNotGrow) {
  const VolumeKnobFinding found = grown_by(0.68, 1.2);
  EXPECT_TRUE(found.queries.grown);
  EXPECT_NEAR(found.product.mean, 0.816, 1e-12);
  EXPECT_EQ(found.knob, VolumeKnob::neither);
  EXPECT_THAT(found.sentence,
              HasSubstr("Neither turned the volume up (queries grew, but the product of both norms did not)"));
  EXPECT_THAT(found.sentence, HasSubstr("The product ‖q‖·‖k‖ shrank to 82 %"));
  EXPECT_THAT(found.sentence, HasSubstr("key norms shrank to 68 %"));
  // 1.08 each: no norm grew by a tenth, the product, 1.1664, did.
  const VolumeKnobFinding together = grown_by(1.08, 1.08);
  EXPECT_TRUE(together.product.grown);
  EXPECT_EQ(together.knob, VolumeKnob::neither);
  EXPECT_THAT(together.sentence, HasSubstr("only the product of both norms grew"));
  EXPECT_THAT(grown_by(1, 1).sentence, HasSubstr("Neither keys nor queries turned the volume up:"));
}

// Query heads 0 and 1 read key head 0, 2 and 3 key head 1, which triples.
TEST(VolumeKnob, MultipliesTheNormsThatMeet) {
  Tracks tracks = tracks_of({1, 2, 4}, 2);
  plant(tracks, "q_norm",
        [](std::size_t moment, auto, std::int64_t head) { return moment == 1 && head == 3 ? 16.0 : 8.0; });
  plant(tracks, "k_norm",
        [](std::size_t moment, auto, std::int64_t head) { return moment == 1 && head == 1 ? 24.0 : 8.0; });
  const Growth product = find_volume_knob(run_of(tracks)).product;
  EXPECT_EQ(product.heads, 4U);
  EXPECT_NEAR(product.mean, std::pow(3.0 * 6.0, 0.25), 1e-12);  // factors 1, 1, 3 and 6
  EXPECT_EQ(product.grown_heads, 2U);
}

// What is printed lies on the side of the limit that the answer is about.
TEST(VolumeKnob, PrintsEnoughDigits) {
  const VolumeKnobFinding found = grown_by(1.0998, 1.5);
  EXPECT_FALSE(found.keys.grown);
  EXPECT_THAT(found.sentence,
              HasSubstr("key norms on average stayed within a factor of 1.1 (factor 1.0998, 95 % interval"));
  EXPECT_THAT(tables_of(found), HasSubstr("| `k_norm` | 1.0998 |"));
  EXPECT_THAT(grown_by(0.9089, 1).sentence, HasSubstr("key norms shrank to 90.9 %"));  // the limit is 90.909
}

TEST(VolumeKnob, GrowsByATenthAtLeast) {
  EXPECT_TRUE(grown_by(1.101, 1).keys.grown);
  EXPECT_FALSE(grown_by(1.099, 1).keys.grown);
  EXPECT_TRUE(grown_by(0.908, 1).keys.shrunk);
  EXPECT_FALSE(grown_by(0.91, 1).keys.shrunk);
}

TEST(VolumeKnob, HasTheGeometricMeanWithItsInterval) {
  const Growth keys = grown_by(1.5, 1).keys;
  EXPECT_NEAR(keys.mean, 1.5, 1e-12);
  // Six logs, three at +ln 1.01 and three at -ln 1.01 about the mean: s = ln 1.01 sqrt(6/5), t(0.975, 5) = 2.570582.
  const double half = 2.570581836 * std::log(1.01) * std::sqrt(1.2 / 6);
  EXPECT_NEAR(keys.low, 1.5 * std::exp(-half), 1e-9);
  EXPECT_NEAR(keys.high, 1.5 * std::exp(half), 1e-9);
  EXPECT_EQ(keys.heads, 6U);
  EXPECT_EQ(keys.grown_heads, 6U);
  EXPECT_EQ(grown_by(0.5, 1).keys.shrunk_heads, 6U);
  EXPECT_EQ(grown_by(1.1, 1).keys.grown_heads, 3U);
}

TEST(VolumeKnob, NeedsTheWholeIntervalAboveOne) {
  Tracks tracks = tracks_of({1, 2, 2}, 2);
  plant(tracks, "q_norm", [](auto...) { return 8.0; });
  // One head triples, the other stays: the mean is 1.7, the interval of two heads holds 1.
  plant(tracks, "k_norm",
        [](std::size_t moment, auto, std::int64_t head) { return moment == 1 && head == 0 ? 24.0 : 8.0; });
  const VolumeKnobFinding found = find_volume_knob(run_of(tracks));
  EXPECT_GT(found.keys.mean, 1.7);
  EXPECT_LT(found.keys.low, 1);
  EXPECT_EQ(found.knob, VolumeKnob::neither);
  EXPECT_EQ(found.keys.grown_heads, 1U);
}

TEST(VolumeKnob, OfOneHeadRestsOnItsMean) {
  const VolumeKnobFinding found = grown_by(1.5, 1, {1, 1, 1});
  EXPECT_TRUE(std::isnan(found.keys.low));
  EXPECT_EQ(found.knob, VolumeKnob::keys);
}

TEST(VolumeKnob, SaysWhatItCanOfLittle) {
  Tracks keys_only = tracks_of({2, 2, 2}, 2);
  plant(keys_only, "k_norm", [](auto...) { return 8.0; });
  EXPECT_EQ(find_volume_knob(run_of(keys_only)).sentence, "Not answered: q_norm was not tracked.");
  Tracks once = tracks_of({2, 2, 2}, 1);
  plant(once, "k_norm", [](auto...) { return 8.0; });
  plant(once, "q_norm", [](auto...) { return 8.0; });
  EXPECT_EQ(find_volume_knob(run_of(once)).knob, std::nullopt);
  plant(keys_only, "q_norm", [](std::size_t moment, auto...) { return moment == 0 ? 0.0 : NAN; });
  const VolumeKnobFinding unknown = find_volume_knob(run_of(keys_only));
  EXPECT_EQ(unknown.knob, std::nullopt);
  EXPECT_THAT(unknown.sentence, HasSubstr("query norms are not known at both ends"));
}

}  // namespace
}  // namespace headscope
