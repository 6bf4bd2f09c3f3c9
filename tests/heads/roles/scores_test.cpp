#include <limits>

#include "heads/roles/definition.h"
#include "heads/roles/synthetic.h"

namespace headscope {
namespace {

using namespace made_heads;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double rounding = 1e-15;  // two or three operations on numbers near 1

// One layer, one head, one metric.
HeadScores scores_of(const std::string& metric, double value, std::int64_t d = 0) {
  Tracks tracks = made_tracks({1, 1, 1});
  tracks.set(metric, 0, 0, 0, value);
  return scores_at(tracks, 0, d).at(0);
}

TEST(Scores, FollowTheirFormulas) {
  EXPECT_NEAR(scores_of("entropy_norm", 0.3)[Score::focused], 0.7, rounding);
  EXPECT_EQ(scores_of("entropy_norm", 0.3)[Score::broad], 0.3);
  EXPECT_EQ(scores_of("constancy", 0.2)[Score::constant], 0.2);
  EXPECT_EQ(scores_of("constancy", 0.2)[Score::query_dependent], 0.8);
  EXPECT_EQ(scores_of("consistency", 0.6)[Score::consistent], 0.6);
  EXPECT_EQ(scores_of("sink", 0.1)[Score::sink], 0.1);
  EXPECT_EQ(scores_of("previous", 0.2)[Score::previous], 0.2);
  EXPECT_EQ(scores_of("self", 0.3)[Score::self], 0.3);
  EXPECT_EQ(scores_of("induction", 0.4)[Score::induction], 0.4);
}

TEST(Scores, PlaceAxisAlignmentBetweenAFlatAndAOneHotKey) {
  EXPECT_EQ(scores_of("k_axis", 0.125, 64)[Score::axis_aligned], 0);
  EXPECT_EQ(scores_of("k_axis", 1, 64)[Score::axis_aligned], 1);
  EXPECT_EQ(scores_of("k_axis", 0.625, 16)[Score::axis_aligned], 0.5);  // halfway from 1/4 to 1
  EXPECT_EQ(scores_of("k_axis", 0.625)[Score::axis_aligned], 0.625);    // head dimension unknown
  EXPECT_EQ(scores_of("k_axis", 1, 1)[Score::axis_aligned], 1);         // of one dimension: always one-hot
}

TEST(Scores, CompareNormsWithTheMedianOfAllKeyHeads) {
  Tracks tracks = made_tracks({2, 2, 4});  // query heads 0 and 1 read key head 0
  const double norms[2][2] = {{1, 2}, {4, nan}};
  for (int layer = 0; layer < 2; ++layer)
    for (int head = 0; head < 2; ++head) tracks.set("k_norm", 0, layer, head, norms[layer][head]);
  const auto scores = scores_at(tracks, 0);
  ASSERT_EQ(scores.size(), 8U);
  EXPECT_NEAR(scores[1][Score::high_norm], 1.0 / 3, rounding);  // r = 1/2
  EXPECT_NEAR(scores[1][Score::low_norm], 2.0 / 3, rounding);
  EXPECT_EQ(scores[2][Score::high_norm], 0.5);  // the median head
  EXPECT_EQ(scores[3][Score::low_norm], 0.5);
  EXPECT_NEAR(scores[4][Score::high_norm], 2.0 / 3, rounding);  // r = 2
  EXPECT_TRUE(std::isnan(scores[6][Score::high_norm]));
  EXPECT_TRUE(std::isnan(scores[7][Score::low_norm]));
}

TEST(Scores, DoNotDependOnTheScaleOfNorms) {
  for (const double scale : {1e-6, 1.0, 1e6}) {
    Tracks tracks = made_tracks({1, 3, 3});
    for (int head = 0; head < 3; ++head) tracks.set("k_norm", 0, 0, head, scale * (1 + head));
    EXPECT_NEAR(scores_at(tracks, 0)[2][Score::high_norm], 0.6, rounding);  // r = 3/2
  }
}

TEST(Scores, AreOfTheirOwnLayerHeadAndMoment) {
  Tracks tracks = made_tracks({2, 1, 3}, 2);
  for (std::size_t moment = 0; moment < 2; ++moment)
    for (int layer = 0; layer < 2; ++layer)
      for (int head = 0; head < 3; ++head) {
        tracks.set("sink", moment, layer, head, 0.5 * static_cast<double>(moment) + 0.1 * layer + 0.01 * head);
        tracks.set("k_axis", moment, layer, 0, 0.5 * static_cast<double>(moment) + 0.1 * layer);
      }
  EXPECT_NEAR(scores_at(tracks, 1)[5][Score::sink], 0.62, rounding);
  EXPECT_NEAR(scores_at(tracks, 0)[4][Score::sink], 0.11, rounding);
  EXPECT_NEAR(scores_at(tracks, 1)[4][Score::axis_aligned], 0.6, rounding);
  EXPECT_EQ(scores_at(tracks, 0)[2][Score::axis_aligned], 0);
}

TEST(Scores, AreClamped) {
  EXPECT_EQ(scores_of("entropy_norm", 1.0000001)[Score::focused], 0);  // rounding of a sum of attention
  EXPECT_EQ(scores_of("entropy_norm", 1.0000001)[Score::broad], 1);
  EXPECT_EQ(scores_of("constancy", -0.01)[Score::query_dependent], 1);
  EXPECT_EQ(scores_of("k_axis", 0.1, 64)[Score::axis_aligned], 0);
}

TEST(Scores, OfWhatWasNotMeasuredAreNaN) {
  const HeadScores scores = scores_of("sink", 0.5);
  for (std::size_t i = 0; i < n_scores; ++i)
    EXPECT_EQ(std::isnan(scores.values[i]), static_cast<Score>(i) != Score::sink) << EnumNames<Score>::names[i];
  EXPECT_TRUE(std::isnan(scores_of("sink", nan)[Score::sink]));
  EXPECT_TRUE(std::isnan(scores_of("k_norm", 0)[Score::high_norm]));  // no norm to compare with
}

TEST(Scores, OfInfiniteMeasurementsAreNaN) {
  Tracks tracks = made_tracks({1, 2, 2});
  tracks.set("k_norm", 0, 0, 0, std::numeric_limits<double>::infinity());
  tracks.set("k_norm", 0, 0, 1, 1);
  EXPECT_TRUE(std::isnan(scores_at(tracks, 0)[0][Score::high_norm]));
  EXPECT_TRUE(std::isnan(scores_at(tracks, 0)[0][Score::low_norm]));
  EXPECT_EQ(scores_at(tracks, 0)[1][Score::low_norm], 0.5);  // the other head is its own median
}

TEST(Scores, AreMadeOfMetricsThatExist) {
  for (std::size_t i = 0; i < n_scores; ++i)
    EXPECT_NO_THROW(metric_named(metric_of(static_cast<Score>(i)), "test")) << EnumNames<Score>::names[i];
}

}  // namespace
}  // namespace headscope
