#include "heads/figures/role_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "figures/figure_files.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using headscope::test::TemporaryFolder;
using ::testing::ElementsAre;

const std::vector<std::string> role_list = {"static sink", "semantic retrieval", "syntactic gatherer", "mixed"};

// Every role in turn; scores from 0 to 1.
RoleMapData map_of(std::size_t layers, std::size_t heads) {
  RoleMapData data{"a_run", role_list, layers, heads, {}, {}};
  for (std::size_t i = 0; i < layers * heads; ++i) {
    data.role_of.push_back(i % 4);
    data.score_of.push_back(static_cast<double>(i) / static_cast<double>(std::max<std::size_t>(layers * heads - 1, 1)));
  }
  return data;
}

RoleTimelineData timeline_of(std::size_t moments) {
  RoleTimelineData data{"a_run", {}, role_list, std::vector<Numbers>(4)};
  for (std::size_t i = 0; i < moments; ++i) {
    const double share = 0.2 * static_cast<double>(i) / static_cast<double>(moments);
    data.moments.push_back({static_cast<std::int64_t>(i), static_cast<std::int64_t>(i) * 1000});
    for (std::size_t role = 0; role < 4; ++role) data.share[role].push_back(role == 3 ? 1 - 3 * share : share);
  }
  return data;
}

TEST(RoleFigures, EveryMapAndTimelineDrawsWithoutWarnings) {
  RoleMapData bad_scores = map_of(2, 2);
  bad_scores.score_of = {std::nan(""), -1, 2, 0};
  RoleMapData one_role = map_of(3, 2);
  one_role.role_of.assign(6, 3);
  std::vector<Figure> figures;
  for (const RoleMapData& data :
       {map_of(4, 4), map_of(32, 32), map_of(80, 64), map_of(1, 1), map_of(1, 40), map_of(0, 0), bad_scores, one_role})
    figures.push_back(role_map_figure(data));
  for (const std::size_t moments : {0, 1, 2, 1000}) figures.push_back(role_timeline_figure(timeline_of(moments)));
  for (std::size_t i = 0; i < figures.size(); ++i) figures[i].name += std::to_string(i);
  const TemporaryFolder folder;
  EXPECT_EQ(draw(figures, folder.path(), light_theme()).warnings, "");
  for (const Figure& figure : figures)
    EXPECT_GE(png_size(folder.path() / (figure.name + ".png")).first, 1600u) << figure.name;
}

TEST(RoleMap, ATileIsFilledAsFarAsItsRoleIsClear) {
  RoleMapData data = map_of(2, 2);
  data.role_of = {0, 3, 0, 0};
  data.score_of = {1, 0.5, 0.25, 0};
  const Figure figure = role_map_figure(data);
  EXPECT_EQ(figure.name, "role_map");
  const Table& sinks = figure.data.at(0).table;
  EXPECT_THAT(sinks.integers("layer"), ElementsAre(0, 1, 1));
  EXPECT_THAT(sinks.integers("head"), ElementsAre(0, 0, 1));
  EXPECT_THAT(sinks.numbers("score"), ElementsAre(1, 0.25, 0));
  // Four times the square is the score, and at least a tenth.
  EXPECT_THAT(sinks.numbers("half"), ElementsAre(0.5, 0.25, ::testing::DoubleNear(std::sqrt(0.1) / 2, 1e-15)));
  EXPECT_EQ(mark_named(figure, "mixed (1)").half, "");  // no role, no score: one colour
  EXPECT_TRUE(completed(figure).panels[0].y.reversed);  // head 0 is at the top
}

TEST(RoleMap, TheLegendHasTheRolesThatHeadsHave) {
  RoleMapData data = map_of(2, 2);
  data.role_of = {2, 3, 2, 2};
  const Figure figure = role_map_figure(data);
  EXPECT_THAT(legend_of(figure), ElementsAre("syntactic gatherer (3)", "mixed (1)"));
  EXPECT_EQ(mark_named(figure, "syntactic gatherer (3)").colour.index, 2u);
  EXPECT_EQ(mark_named(figure, "mixed (1)").colour.role, Colour::muted);
}

TEST(RoleMap, SizesThatDoNotMatchAreRefused) {
  RoleMapData data = map_of(2, 2);
  data.score_of.pop_back();
  EXPECT_THROW(role_map_figure(data), Error);
}

TEST(RoleTimeline, SharesAreThoseGivenAndRolesHaveTheirColours) {
  const RoleTimelineData data = timeline_of(4);
  const Figure figure = role_timeline_figure(data);
  EXPECT_EQ(figure.name, "role_timeline");
  EXPECT_EQ(figure.data.at(0).table.integers("tokens"),
            (Integers{0, 500, 500, 1000, 1500, 1500, 2000, 2500, 2500, 3000}));
  const auto held = [](const Numbers& share) {  // half of the way to the moments beside it
    return Numbers{share[0], share[0], share[1], share[1], share[1], share[2], share[2], share[2], share[3], share[3]};
  };
  EXPECT_EQ(figure.data.at(0).table.numbers("role3"), held(data.share[3]));
  const Mark second = mark_named(figure, "semantic retrieval");
  EXPECT_EQ(second.colour.index, 1u);
  const Numbers low = figure.data[0].table.numbers(second.low), high = figure.data[0].table.numbers(second.high);
  EXPECT_EQ(low, held(data.share[0]));  // it stands on the first role
  for (std::size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(high[3 * i], data.share[0][i] + data.share[1][i]);
}

TEST(RoleTimeline, SaysSoWhereThereIsNothingToSee) {
  EXPECT_EQ(role_timeline_figure(timeline_of(1)).nothing, "one moment: role_map shows it");
  RoleTimelineData data = timeline_of(2);
  EXPECT_FALSE(role_timeline_figure(data).panels.empty());
  for (std::size_t role = 0; role < 4; ++role) data.share[role] = role == 3 ? Numbers{1, 1} : Numbers{0, 0};
  EXPECT_TRUE(role_timeline_figure(data).panels.empty());
  EXPECT_EQ(role_timeline_figure(data).nothing, "every head is mixed at every moment");
}

}  // namespace
}  // namespace headscope
