#include "heads/findings/rank_collapse.h"

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

// Early layers keep 24 dimensions; the others fall to 8 at moment 1 and end at 11; heads lie one on either side.
Tracks collapsed() {
  Tracks tracks = tracks_of({6, 2, 4}, 3);
  plant(tracks, "k_pr", [](std::size_t moment, std::int64_t layer, std::int64_t head) {
    const double side = head == 0 ? -1 : 1;
    if (layer < 2 || moment == 0) return 24 + side;
    return (moment == 1 ? 8 : 11) + side;
  });
  return tracks;
}

TEST(RankCollapse, FollowsTheThirdsOfTheLayers) {
  const RankCollapse found = find_rank_collapse(run_of(collapsed()));
  ASSERT_EQ(found.curves.size(), 3U);
  EXPECT_EQ(found.curves[0].curve.end, 24);
  const RankCurve& middle = found.curves[1];
  EXPECT_EQ(middle.metric, "k_pr");
  EXPECT_EQ(middle.group.group, LayerGroup::middle);
  EXPECT_EQ(middle.curve.start, 24);
  EXPECT_EQ(middle.curve.lowest, 8);
  EXPECT_EQ(middle.curve.lowest_at, (Moment{10, 640}));
  EXPECT_EQ(middle.curve.end, 11);
  EXPECT_THAT(found.sentence, HasSubstr("24 to 11 in the middle layers (2 and 3), lowest 8 at step 10;"));
  EXPECT_THAT(found.sentence, HasSubstr("k_axis and k_top_share were not tracked"));
}

TEST(RankCollapse, CountsOneHotHeadsAndNamesPrivilegedDimensions) {
  Tracks tracks = collapsed();
  const auto one = [](std::int64_t layer, std::int64_t head) { return layer == 3 && head == 1; };
  plant(tracks, "k_axis", [&](auto, auto layer, auto head) { return one(layer, head) ? 0.9 : 0.899; });
  plant(tracks, "k_top_share", [&](std::size_t moment, auto layer, auto head) {
    if (layer == 5 && head == 0) return 0.5;
    return one(layer, head) && moment == 2 ? 0.95 : 0.499;
  });
  plant(tracks, "k_top_dim", [&](auto, auto layer, auto) { return layer == 3 ? 10.0 : 4.0; });
  plant(tracks, "k_top_energy", [](auto...) { return 0.75; });
  const RankCollapse found = find_rank_collapse(run_of(tracks));
  EXPECT_EQ(found.one_hot, 1U);
  EXPECT_DOUBLE_EQ(found.one_hot_share(), 1.0 / 12);
  ASSERT_EQ(found.privileged.size(), 2U);  // the largest share first
  EXPECT_EQ(found.privileged[0].layer, 3);
  EXPECT_EQ(found.privileged[0].head, 1);
  EXPECT_EQ(found.privileged[0].dimension, 10);
  EXPECT_EQ(found.privileged[0].top_share, 0.95);
  EXPECT_EQ(found.privileged[0].top_energy, 0.75);
  EXPECT_EQ(found.privileged[1].layer, 5);
  EXPECT_THAT(found.sentence, HasSubstr("1 of 12 key heads is one-hot ("));
  EXPECT_THAT(found.sentence, HasSubstr("above all L3K1 (dimension 10): largest in 95 % of its keys"));
}

TEST(RankCollapse, SaysWhatItCanOfLittle) {
  const RankCollapse none = find_rank_collapse(run_of(tracks_of({1, 1, 1}, 1)));
  EXPECT_TRUE(none.curves.empty() && std::isnan(none.one_hot_share()));
  EXPECT_THAT(none.sentence, HasSubstr("neither k_pr nor k_erank nor k_pr_vector was tracked"));
  Tracks one = tracks_of({1, 1, 1}, 1);
  plant(one, "k_erank", [](auto...) { return 6.0; });
  plant(one, "k_axis", [](auto...) { return NAN; });
  const RankCollapse found = find_rank_collapse(run_of(one));
  EXPECT_THAT(found.sentence, HasSubstr("(k_erank) is 6 in the early layer (0)."));
  EXPECT_TRUE(std::isnan(found.one_hot_share()));
}

TEST(RankCollapse, TakesWhatOnlyTheOtherSourceHas) {
  RunTracks run = run_of(collapsed());
  run.probe = tracks_of({6, 2, 4}, 2, "probe");
  plant(run.probe, "k_axis", [](auto...) { return 1.0; });
  plant(run.probe, "k_top_share", [](auto...) { return 0.1; });
  const RankCollapse found = find_rank_collapse(run);
  EXPECT_EQ(found.ranks.source, "train");
  EXPECT_EQ(found.outliers.source, "probe");
  EXPECT_EQ(found.one_hot_share(), 1);
  EXPECT_THAT(tables_of(find_rank_collapse(run_of(collapsed()))),
              HasSubstr("| `k_pr` | middle layers (2 and 3) | 24 | 8 | 10 | 11 |"));
}

}  // namespace
}  // namespace headscope
