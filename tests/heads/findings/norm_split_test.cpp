#include "heads/findings/norm_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "heads/findings/planted.h"

namespace headscope {
namespace {

using test::plant;
using test::run_of;
using test::tracks_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Values = std::vector<double>;

NormSplit split_of(Tracks tracks) {
  DipTester tester;
  return find_norm_split(run_of(std::move(tracks)), tester);
}

// From moment 2 on, half of the heads of layer 0 are sinks of norm 15, the others gatherers of norm 3; layer 1 keeps 9.
Tracks divided() {
  Tracks tracks = tracks_of({2, 8, 8}, 5);
  plant(tracks, "k_norm", [](std::size_t moment, std::int64_t layer, std::int64_t head) {
    const double jitter = 0.1 * static_cast<double>(head);
    if (layer == 1 || moment < 2) return 9 + jitter;
    return (head < 4 ? 15 : 3) + jitter;
  });
  plant(tracks, "k_norm_std", [](auto...) { return 2.0; });
  return tracks;
}

TEST(BetweenHeadShare, IsTheVarianceBetweenHeadsOverAll) {
  // Means 1 and 3: variance 1; variances inside 2 and 4: mean 3.
  EXPECT_DOUBLE_EQ(between_head_share(Values{1, 3}, Values{std::sqrt(2.0), 2}), 0.25);
  EXPECT_EQ(between_head_share(Values{8, 8}, Values{0, 0}), 0);
  EXPECT_EQ(between_head_share(Values{1, 3}, Values{0, 0}), 1);
  EXPECT_TRUE(std::isnan(between_head_share(Values{1}, Values{1})));
  EXPECT_TRUE(std::isnan(between_head_share(Values{1, 3}, Values{})));
  EXPECT_DOUBLE_EQ(between_head_share(Values{1, NAN, 3}, Values{1, 1, 1}), 0.5);
}

TEST(NormSplit, FindsSinksAndGatherersInOneLayer) {
  const NormSplit split = split_of(divided());
  ASSERT_EQ(split.layers.size(), 2U);
  EXPECT_TRUE(split.layers[0].groups.found());
  EXPECT_THAT(split.layers[0].groups.low, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(split.layers[0].groups.high, ElementsAre(0, 1, 2, 3));
  EXPECT_FALSE(split.layers[1].groups.found());
  EXPECT_THAT(split.named_layers, ElementsAre(0));
  EXPECT_NEAR(split.layers[0].mean, 9.35, 1e-12);  // the mean hides it
  EXPECT_NEAR(split.layers[1].mean, 9.35, 1e-12);
}

TEST(NormSplit, NamesALayerOnlyIfItPassesForAllLayersTested) {
  // The same gap of two pairs in one of 2 layers and in one of 12: p is about 0.015.
  for (const std::int64_t layers : {2, 12}) {
    Tracks tracks = tracks_of({layers, 4, 4}, 1);
    plant(tracks, "k_norm", [](auto, std::int64_t layer, std::int64_t head) {
      constexpr double apart[] = {1, 1.1, 2.1, 2.2};
      return layer == 0 ? apart[head] : static_cast<double>(head) * 0.5;
    });
    const NormSplit split = split_of(tracks);
    EXPECT_TRUE(split.layers[0].groups.found());
    EXPECT_EQ(split.named_layers.size(), layers == 2 ? 1U : 0U) << split.layers[0].groups.test.p_value;
  }
}

TEST(NormSplit, BeginsWhereTheShareStaysAboveOneHalf) {
  const NormSplit split = split_of(divided());
  EXPECT_EQ(split.layers[0].begins, (Moment{20, 1280}));
  EXPECT_EQ(split.layers[1].begins, std::nullopt);
  EXPECT_GT(split.layers[0].between_share, 0.85);
  EXPECT_LT(split.layers[1].between_share, 0.05);
  EXPECT_DOUBLE_EQ(split.between_share, (split.layers[0].between_share + split.layers[1].between_share) / 2);
  EXPECT_EQ(split.begins, std::nullopt);  // the mean over layers is below one half
}

TEST(NormSplit, DoesNotBeginWhileTheShareFallsBack) {
  Tracks tracks = tracks_of({1, 2, 2}, 4);
  // Apart at moment 1, together at 2, apart at 3.
  plant(tracks, "k_norm", [](std::size_t moment, auto, std::int64_t head) {
    return moment % 2 == 1 ? 5 + 10 * static_cast<double>(head) : 10.0;
  });
  plant(tracks, "k_norm_std", [](auto...) { return 1.0; });
  const NormSplit split = split_of(tracks);
  EXPECT_THAT(split.share_over_time, ElementsAre(0, ::testing::Gt(0.5), 0, ::testing::Gt(0.5)));
  EXPECT_EQ(split.begins, (Moment{30, 1920}));
  EXPECT_THAT(split.sentence, HasSubstr("since step 30"));
}

TEST(NormSplit, TestsAllHeadsWithoutTheirLayersMean) {
  // Every layer has its own level, one head below and two above it: two populations that only the model shows.
  Tracks tracks = tracks_of({10, 3, 3}, 1);
  plant(tracks, "k_norm", [](auto, std::int64_t layer, std::int64_t head) {
    return 3 * static_cast<double>(layer) + (head == 0 ? -2 : 2) * (1 + 0.01 * static_cast<double>(layer));
  });
  const NormSplit two = split_of(tracks);
  EXPECT_EQ(two.within_layers.n, 30U);
  EXPECT_LT(two.within_layers.p_value, 0.01);
  EXPECT_TRUE(std::isnan(two.layers[0].groups.test.p_value));  // three heads are too few
  EXPECT_THAT(two.sentence, HasSubstr("more than one population"));
  // Two heads lie on opposite sides of their mean, whatever they are.
  Tracks pairs = tracks_of({10, 2, 2}, 1);
  plant(pairs, "k_norm", [](auto, std::int64_t layer, std::int64_t head) { return static_cast<double>(layer + head); });
  EXPECT_THAT(split_of(pairs).sentence,
              HasSubstr("cannot be tested: the test needs layers with three key heads or more, and "
                        "four such heads in all; here a layer has 2."));
  // Heads uniformly about their layer: one population.
  Tracks even = tracks_of({10, 4, 4}, 1);
  NumpyGenerator generator(1);
  plant(even, "k_norm",
        [&](auto, std::int64_t layer, auto) { return 3 * static_cast<double>(layer) + generator.uniform(); });
  const NormSplit one = split_of(even);
  EXPECT_GT(one.within_layers.p_value, 0.05);
  EXPECT_THAT(one.sentence, HasSubstr("no second population"));
  EXPECT_THAT(one.sentence, HasSubstr("of 10 layers have p < 0.05; chance alone gives 0.5 on average."));
}

// Nothing began at the only moment of a checkpoint.
TEST(NormSplit, OfOneMomentHasNoBeginning) {
  Tracks tracks = tracks_of({1, 4, 4}, 1);
  plant(tracks, "k_norm", [](auto, auto, std::int64_t head) { return 5 + 10 * static_cast<double>(head); });
  plant(tracks, "k_norm_std", [](auto...) { return 1.0; });
  const NormSplit split = split_of(tracks);
  EXPECT_GT(split.between_share, 0.9);
  EXPECT_EQ(split.begins, std::nullopt);
  EXPECT_EQ(split.layers[0].begins, std::nullopt);
  EXPECT_THAT(tables_of(split), ::testing::Not(HasSubstr("since")));
  EXPECT_THAT(tables_of(split_of(divided())), HasSubstr("| split since step |"));
}

TEST(NormSplit, PrintsAShareOnItsSideOfOneHalf) {
  Tracks tracks = tracks_of({1, 2, 2}, 2);
  // Variance between heads 1, inside 0.9988: the share is 0.5003.
  plant(tracks, "k_norm", [](auto, auto, std::int64_t head) { return 1 + 2 * static_cast<double>(head); });
  plant(tracks, "k_norm_std", [](auto...) { return std::sqrt(1 / 0.5003 - 1); });
  EXPECT_THAT(split_of(tracks).sentence, HasSubstr("make 50.03 % of the variance of the key norm at step 10"));
}

TEST(NormSplit, SaysWhatItCanOfLittle) {
  Tracks tracks = tracks_of({1, 1, 1}, 1);
  plant(tracks, "k_norm", [](auto...) { return 8.0; });
  plant(tracks, "k_norm_std", [](auto...) { return 1.0; });
  const NormSplit one = split_of(tracks);
  EXPECT_TRUE(std::isnan(one.between_share) && std::isnan(one.within_layers.p_value));
  EXPECT_THAT(one.sentence, HasSubstr("here a layer has 1."));
  Tracks without = tracks_of({2, 4, 4}, 2);
  plant(without, "k_norm", [](auto, auto, std::int64_t head) { return static_cast<double>(head); });
  const NormSplit partly = split_of(without);
  EXPECT_TRUE(std::isnan(partly.between_share));
  EXPECT_FALSE(std::isnan(partly.within_layers.p_value));
  EXPECT_THAT(partly.sentence, HasSubstr("k_norm_std was not tracked"));
  EXPECT_EQ(split_of(tracks_of({2, 4, 4}, 2)).sentence, "Not answered: k_norm and k_norm_std were not tracked.");
}

}  // namespace
}  // namespace headscope
