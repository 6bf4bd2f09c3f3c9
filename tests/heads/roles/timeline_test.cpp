#include <limits>

#include "heads/roles/roles.h"
#include "heads/roles/synthetic.h"

namespace headscope {
namespace {

using namespace made_heads;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const RoleDefinition& two_role_definition() {
  static const RoleDefinition definition =
      parse_role_definition("id: t\nroles: {first: {sink: 0.5}, second: {broad: 0.5, high_norm: 0.5}}", "t.yaml");
  return definition;
}

// Two layers of two heads.
RoleTimeline example() {
  const std::vector<MomentLabels> moments = {
      {{0, 0}, {2, 2, 2, 2}}, {{1, 75}, {0, 2, 2, 1}}, {{2, 76}, {0, 2, 2, 0}}, {{3, 100}, {0, 2, 0, 0}}};
  return timeline_of(moments, two_role_definition(), 2);
}

TEST(RoleTimeline, HasTheShareOfEveryRole) {
  EXPECT_THAT(example().shares, ElementsAre(ElementsAre(0, 0, 1), ElementsAre(0.25, 0.25, 0.5),
                                            ElementsAre(0.5, 0, 0.5), ElementsAre(0.75, 0, 0.25)));
  EXPECT_EQ(example().moments[2], (Moment{2, 76}));
}

TEST(RoleTimeline, HasEveryChangeOfEveryHead) {
  using T = RoleTransition;
  EXPECT_THAT(example().transitions, ElementsAre(T{0, 0, {1, 75}, 2, 0}, T{1, 1, {1, 75}, 2, 1}, T{1, 1, {2, 76}, 1, 0},
                                                 T{1, 0, {3, 100}, 2, 0}));
}

TEST(RoleTimeline, CountsTheChangesOfTheLastQuarter) {
  EXPECT_EQ(example().late_transitions(), 2);  // 75 of 100 tokens is not yet in it
  // A run that was continued from tokens on: the quarter is of what is seen.
  const std::vector<MomentLabels> moments = {{{0, 900}, {0}}, {{1, 970}, {1}}, {{2, 980}, {0}}, {{3, 1000}, {0}}};
  EXPECT_EQ(timeline_of(moments, two_role_definition(), 1).late_transitions(), 1);
  EXPECT_EQ(timeline_of({}, two_role_definition(), 1).late_transitions(), 0);
}

TEST(RoleTimeline, LeavesOutMomentsThatLackAMetric) {
  Tracks tracks = made_tracks({1, 1, 2}, 4);
  for (std::size_t i = 0; i < 4; ++i) tracks.set("sink", i, 0, 0, 0.5);
  EXPECT_THAT(comparable_moments(tracks, two_role_definition()), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(unmeasured_scores(tracks, two_role_definition()), ElementsAre(Score::broad, Score::high_norm));
  tracks.set("entropy_norm", 1, 0, 1, 0.5);
  tracks.set("entropy_norm", 3, 0, 1, 0.5);
  tracks.set("k_axis", 0, 0, 0, 0.5);  // no role asks for it
  EXPECT_THAT(comparable_moments(tracks, two_role_definition()), ElementsAre(1, 3));
  EXPECT_THAT(unmeasured_scores(tracks, two_role_definition()), ElementsAre(Score::high_norm));
  tracks.set("k_norm", 0, 0, 0, 1);
  EXPECT_THAT(comparable_moments(tracks, two_role_definition()), IsEmpty());
  EXPECT_THAT(unmeasured_scores(tracks, two_role_definition()), IsEmpty());
}

TEST(RoleTimeline, TakesWhatIsNotANumberForNotMeasured) {
  Tracks tracks = made_tracks({1, 1, 1}, 1);
  tracks.set("sink", 0, 0, 0, std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(unmeasured_scores(tracks, two_role_definition()),
              ElementsAre(Score::broad, Score::high_norm, Score::sink));
}

}  // namespace
}  // namespace headscope
