#include "heads/findings/key_evolution.h"

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

KeyEvolution of_profile(const std::vector<double>& norms) {
  Tracks tracks = tracks_of({static_cast<std::int64_t>(norms.size()), 2, 2}, 1);
  plant(tracks, "k_norm", [&](auto, std::int64_t layer, std::int64_t head) {
    return norms[static_cast<std::size_t>(layer)] + (head == 0 ? -0.5 : 0.5);
  });
  return find_key_evolution(run_of(tracks));
}

TEST(Checkmark, FallsInTheFirstThirdAndRisesToTheEnd) {
  const KeyEvolution found = of_profile({6, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_EQ(found.lowest_layer, 1);
  EXPECT_EQ(found.depth_correlation, 1);
  EXPECT_EQ(found.checkmark, true);
  EXPECT_THAT(found.sentence,
              HasSubstr("has the checkmark shape (lowest in the first third, then rising): the lowest norm is in "
                        "layer 1 (3), the last layer has 9, 3.00 times that"));
}

TEST(Checkmark, IsRefusedByEachPartOfItsRule) {
  EXPECT_EQ(of_profile({9, 8, 7, 3, 4, 5, 6}).checkmark, false);         // lowest beyond the first third
  EXPECT_EQ(of_profile({3, 9, 4, 8, 5, 7, 5.5, 6}).checkmark, false);    // rises without order
  EXPECT_EQ(of_profile({8, 8.1, 8.2, 8.3, 8.4, 8.5}).checkmark, false);  // last only 1.06 times the lowest
  EXPECT_EQ(of_profile({8, 8, 8, 8, 8, 8}).checkmark, false);            // flat
  EXPECT_EQ(of_profile({9, 8, 7, 6}).checkmark, false);                  // falls
  EXPECT_EQ(of_profile({3, 6, 9}).checkmark, std::nullopt);              // three layers
  EXPECT_EQ(of_profile({3, 4, NAN, 6, 9}).checkmark, std::nullopt);      // a layer is not known
  EXPECT_EQ(of_profile({3, 4, 6, 9}).checkmark, true);
}

TEST(Checkmark, SaysOnceWhereTheLowestLayerIsTheLast) {
  const std::string falls = of_profile({9, 8, 7, 2.72}).sentence;
  EXPECT_THAT(falls, HasSubstr("the lowest norm is in the last layer, 3 (2.72)."));
  // 1.0998 times the lowest is less than 1.1 times, and does not read 1.10.
  const KeyEvolution near = of_profile({5, 5.1, 5.2, 5.3, 5.4, 5.499});
  EXPECT_EQ(near.checkmark, false);
  EXPECT_THAT(near.sentence, HasSubstr("1.0998 times that"));
}

// Early layers fall from 8 to 5; middle ones dip to 7 at moment 1 and rise to 9; final ones stay, but for 1 %.
Tracks evolving() {
  Tracks tracks = tracks_of({6, 2, 2}, 4);
  plant(tracks, "k_norm", [](std::size_t moment, std::int64_t layer, std::int64_t) {
    constexpr double early[] = {8, 7, 6, 5}, middle[] = {8, 7, 8, 9}, last[] = {8, 7.92, 8, 8.05};
    return layer < 2 ? early[moment] : layer < 4 ? middle[moment] : last[moment];
  });
  return tracks;
}

TEST(KeyEvolution, DipsAndRises) {
  const KeyEvolution found = find_key_evolution(run_of(evolving()));
  ASSERT_EQ(found.groups.size(), 3U);
  const auto expect = [&](std::size_t group, bool dips, bool rises) {
    EXPECT_EQ(found.groups[group].dips, dips) << group;
    EXPECT_EQ(found.groups[group].rises, rises) << group;
  };
  expect(0, true, false);
  expect(1, true, true);
  expect(2, false, false);
  EXPECT_EQ(found.groups[1].norm.lowest_at, (Moment{10, 640}));
  EXPECT_DOUBLE_EQ(found.groups[1].rise, 9.0 / 7);
  EXPECT_THAT(
      found.sentence,
      HasSubstr("the early layers (0 and 1) fell from 8 to 5, the middle layers (2 and 3) dipped from 8 to 7 "
                "(step 10) and rose to 9 and the final layers (4 and 5) ended at 8.05, within 2 % of the start (8)."));
}

TEST(KeyEvolution, HasTheEnergyInOneDimensionAndTheCosine) {
  Tracks tracks = evolving();
  plant(tracks, "k_max_abs_mean", [](std::size_t, std::int64_t layer, std::int64_t head) {
    return (layer < 4 ? 1 : 8.05) * (head == 0 ? 0.8 : 0.6);
  });
  plant(tracks, "k_top_energy", [](auto...) { return 0.25; });
  plant(tracks, "k_cosine", [](std::size_t moment, auto...) { return moment == 0 ? 0.01 : 0.55; });
  const GroupEvolution final = find_key_evolution(run_of(tracks)).groups[2];
  EXPECT_NEAR(final.energy_in_one_dimension, (0.64 + 0.36) / 2, 1e-12);
  EXPECT_EQ(final.top_energy, 0.25);
  EXPECT_EQ(final.cosine_start, 0.01);
  EXPECT_EQ(final.cosine_end, 0.55);
}

TEST(KeyEvolution, SaysWhatItCanOfLittle) {
  const KeyEvolution one = of_profile({8});
  EXPECT_EQ(one.groups.size(), 1U);
  EXPECT_EQ(one.groups[0].dips, std::nullopt);
  EXPECT_EQ(one.checkmark, std::nullopt);
  EXPECT_TRUE(std::isnan(one.groups[0].energy_in_one_dimension) && std::isnan(one.groups[0].cosine_end));
  EXPECT_EQ(find_key_evolution(run_of(tracks_of({4, 2, 2}, 2))).sentence, "Not answered: k_norm was not tracked.");
}

}  // namespace
}  // namespace headscope
