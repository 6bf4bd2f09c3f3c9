// Whatever numbers a table holds, a figure is drawn or refused with one line: no endless loop, no unbounded memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "figures/every_figure.h"
#include "figures/figure_files.h"
#include "figures/gnuplot_skeleton.h"
#include "figures/synthetic.h"
#include "heads/figures/synthetic_tracks.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using headscope::test::expect_error;
using headscope::test::figure_kinds;
using headscope::test::FigureKind;
using headscope::test::FigureNumbers;
using headscope::test::FigureTexts;
using headscope::test::skeleton_of;
using headscope::test::TemporaryFolder;
using ::testing::IsEmpty;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr auto most = std::numeric_limits<std::int64_t>::max(), least = std::numeric_limits<std::int64_t>::min();
const FigureTexts texts = {.title = "run", .by = "", .order = "", .role = "sink", .run_1 = "a", .run_2 = "b"};

class EveryKindOfNumbers : public ::testing::TestWithParam<std::size_t> {
 protected:
  const FigureKind& kind = figure_kinds()[GetParam()];

  // Surgery refuses numbers that no operation has.
  [[nodiscard]] std::vector<Figure> figures(double all) const {
    try {
      return kind.figures(texts, FigureNumbers(all));
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::input) << error.what();
      EXPECT_STREQ(kind.name, "surgery");
      return {};
    }
  }
};
INSTANTIATE_TEST_SUITE_P(HostileNumber, EveryKindOfNumbers, ::testing::Range<std::size_t>(0, figure_kinds().size()),
                         [](const auto& kind) { return figure_kinds()[kind.param].name; });

TEST_P(EveryKindOfNumbers, ScriptsHoldNumbersOnly) {
  for (const double all : {std::nan(""), infinity, -infinity, 1e17, -1e17, 1e100, 1.79e308, -1.79e308, 5e-324, 0.0})
    for (const Figure& figure : figures(all)) {
      EXPECT_THAT(skeleton_of(script_of(figure)).faults, IsEmpty()) << figure.name << " of " << all;
      const Layout layout = lay_out(completed(figure));
      EXPECT_TRUE(layout.height < 9000 && layout.width < 9000) << figure.name << " of " << all;  // cairo's limit
    }
}

TEST_P(EveryKindOfNumbers, GnuplotDrawsHugeAndInfiniteOnes) {
  const TemporaryFolder folder;
  for (const double all : {1e17, infinity})
    EXPECT_EQ(draw(figures(all), folder.path(), light_theme()).warnings, "") << all;
}

PlasticityTables two_heads(const Integers& layer, const Integers& head, const Integers& q_bucket = {1, 2}) {
  PlasticityTables tables;
  tables.heads.add("layer", layer).add("q_head", head).add("ap_overall", Numbers{0.25, 0.5});
  tables.cells.add("layer", layer).add("q_head", head).add("q_bucket", q_bucket).add("k_bucket", Integers{0, 0});
  tables.cells.add("plasticity", Numbers{0.25, 0.5});
  tables.components.add("layer", layer).add("q_head", head).add("weight", Numbers{0.5, 0.5});
  return tables;
}

TEST(HostileNumber, LayersHeadsAndBucketsBeyondAnyModelAreRefused) {
  const auto refuse = [](const PlasticityTables& tables, const std::string& message) {
    expect_error(Fault::input, message, [&] { plasticity_figures(tables, {.per_head = true}); });
  };
  refuse(two_heads({0, std::int64_t{1} << 62}, {0, 0}),
         "column 'layer' holds 4611686018427387904; figures show 0 to 4095");
  refuse(two_heads({least, most}, {0, 0}), "column 'layer' holds -9223372036854775808");
  refuse(two_heads({0, 0}, {0, 1024}), "column 'q_head' holds 1024; figures show 0 to 1023");
  refuse(two_heads({0, 4095}, {0, 1023}), "span 4096 layers of 1024 heads; a map shows 65536 heads");
  refuse(two_heads({0, 0}, {0, 1}, {1, most}), "column 'q_bucket' holds 9223372036854775807");
  refuse(two_heads({0, 0}, {0, 1}, {-1, 0}), "column 'q_bucket' holds -1");
  PlasticityComparison comparison = synthetic::comparison({.layers = 1, .q_heads = 1});
  comparison.table = Table("comparison");
  comparison.table.add("layer", Integers{most}).add("q_head", Integers{0}).add("ap_1", Numbers{0});
  comparison.table.add("ap_2", Numbers{1}).add("difference", Numbers{1}).add("low", Numbers{0}).add("high", Numbers{2});
  comparison.table.add("significant", Integers{1});
  expect_error(Fault::input, "column 'layer' holds", [&] { comparison_figures(comparison); });
}

TEST(HostileNumber, WhatIsNotRefusedIsDrawn) {
  std::vector<Figure> figures =
      plasticity_figures(two_heads({4095, 4095}, {0, 1023}, {1, 999'999'999}), {.per_head = true});
  RunTracks tracks = synthetic_tracks({.layers = 2, .moments = 3});
  tracks.train.moments = {{0, least}, {10, 0}, {20, most}};
  for (Figure& figure : tracking_figures({"", &tracks})) figures.push_back(std::move(figure));
  figures.push_back(role_timeline_figure({"", {{0, 0}, {1, most}, {2, least}}, {"sink"}, {{1, 1, 1}}}));
  const TemporaryFolder folder;
  EXPECT_EQ(draw(figures, folder.path(), light_theme()).warnings, "");
}

TEST(HostileNumber, CurvesOfManyLayersAtManyPlacesAreRefused) {
  PlasticityTables tables = two_heads({0, 1}, {0, 0});
  Integers layer;
  for (std::int64_t i = 0; i < 4096; ++i) layer.push_back(i);
  layer.resize(4096 + 2000, 0);
  tables.components = Table("components");
  tables.components.add("layer", layer).add("q_head", Integers(layer.size(), 0));
  tables.components.add("weight", Numbers(layer.size(), 0.1));
  expect_error(Fault::input, "4096 layers at 2001 different components; a figure shows 4194304 points",
               [&] { plasticity_figures(tables, {}); });
}

TEST(HostileNumber, GainsAndCountsBeyondAnyModelAreRefused) {
  const auto refuse = [](const RunTracks& tracks, const std::string& message) {
    expect_error(Fault::input, message, [&] { tracking_figures({"", &tracks}); });
  };
  RunTracks tracks = synthetic_tracks({.layers = 2, .moments = 2});
  tracks.gains[0].layer = -1;
  refuse(tracks, "a gain of 64 dimensions in layer -1; figures show 4096 dimensions in layers 0 to 4095");
  tracks.gains[0].layer = 0;
  tracks.gains[0].k.assign(100'000, 1);
  refuse(tracks, "a gain of 100000 dimensions in layer 0");
  refuse(synthetic_tracks({.layers = 5000, .key_heads = 1, .query_heads = 1, .moments = 2, .gains = false}),
         "5000 layers of 1 key heads and 1 query heads; figures show 4096 layers of 1024 heads");
}

TEST(HostileNumber, AsManyLayersAsFiguresShowAreDrawnInReasonableTime) {
  const RunTracks tracks =
      synthetic_tracks({.layers = 4096, .key_heads = 1, .query_heads = 1, .moments = 3, .gains = false});
  EXPECT_EQ(tracking_figures({"", &tracks}).size(), 9u);
}

TEST(HostileNumber, MoreRolesThanALegendHoldsAreRefused) {
  RoleMapData map{"", {}, 30, 10, {}, std::vector<double>(300, 1)};
  for (std::size_t i = 0; i < 300; ++i) {
    map.roles.push_back("role");
    map.role_of.push_back(i);
  }
  expect_error(Fault::input, "300 roles; a legend shows 256", [&] { role_map_figure(map); });
}

}  // namespace
}  // namespace headscope
