#include "plasticity/plasticity_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/error.h"
#include "figures/figure_files.h"
#include "figures/synthetic.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using headscope::test::TemporaryFolder;

namespace fs = std::filesystem;
using synthetic::Shape;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> names = {"plasticity_map",         "plasticity_by_layer", "plasticity_ranked",
                                        "bucket_heatmap",         "plasticity_distance", "component_weights",
                                        "component_concentration"};
const std::vector<std::string> names_of_checks = {"gaussian_check", "gaussian_gap"};

TEST(PlasticityFigures, WritesEveryFigureInBothFormatsWithItsScript) {
  const TemporaryFolder folder;
  const auto files =
      draw(plasticity_figures(synthetic::tables({.intervals = true, .checks = true})), folder.path(), light_theme())
          .files;
  std::set<std::string> written;
  for (const fs::path& file : files) written.insert(file.filename());
  std::vector<std::string> all = names;
  all.insert(all.end(), names_of_checks.begin(), names_of_checks.end());
  for (const std::string& name : all) {
    for (const char* ending : {".png", ".svg", ".gp"}) EXPECT_TRUE(written.contains(name + ending)) << name << ending;
    EXPECT_EQ(png_size(folder.path() / (name + ".png")).first, 1600u) << name;
    EXPECT_GT(bytes_of(folder.path() / (name + ".svg")).size(), 2000u) << name;
  }
}

TEST(PlasticityFigures, PerHeadAddsAPageForEachLayer) {
  const auto figures = plasticity_figures(synthetic::tables({.layers = 12}), {.per_head = true});
  ASSERT_EQ(figures.size(), names.size() + 12);
  EXPECT_EQ(figures[names.size()].name, "bucket_heatmap_l00");
  EXPECT_EQ(figures.back().name, "bucket_heatmap_l11");
}

// Every table, however thin, must draw without a word from gnuplot.
class EveryShape : public ::testing::TestWithParam<std::pair<const char*, Shape>> {};
INSTANTIATE_TEST_SUITE_P(
    PlasticityFigures, EveryShape,
    ::testing::Values(std::pair{"OneHead", Shape{.layers = 1, .q_heads = 1, .checks = true}},
                      std::pair{"OneLayer", Shape{.layers = 1, .q_heads = 8, .intervals = true}},
                      std::pair{"OneHeadEachLayer", Shape{.layers = 8, .q_heads = 1}},
                      std::pair{"TwoBucketsOneComponent",
                                Shape{.buckets = 2, .components = 1, .empty_first_key = false}},
                      std::pair{"AllEqual", Shape{.checks = true, .all_equal = true}},
                      std::pair{"AllMissing", Shape{.missing = 1, .checks = true}},
                      std::pair{"TwoBucketsAllEmpty", Shape{.buckets = 2}},
                      std::pair{"NoRows", Shape{.layers = 0, .q_heads = 0, .buckets = 0, .components = 0}},
                      std::pair{"NoCells", Shape{.buckets = 1}},
                      std::pair{"SomeMissing", Shape{.missing = 0.3, .intervals = true, .checks = true}},
                      std::pair{"Many", Shape{.layers = 36, .q_heads = 32, .intervals = true, .checks = true}}),
    [](const auto& shape) { return shape.param.first; });

TEST_P(EveryShape, DrawsWithoutWarnings) {
  const Shape shape = GetParam().second;
  const Theme& theme = shape.intervals ? dark_theme() : light_theme();
  const TemporaryFolder folder;
  auto figures = plasticity_figures(synthetic::tables(shape), {.per_head = shape.layers <= 6});
  for (Figure& figure : comparison_figures(synthetic::comparison(shape))) figures.push_back(figure);
  EXPECT_EQ(draw(figures, folder.path(), theme).warnings, "");
  for (const Figure& figure : figures)
    EXPECT_GE(png_size(folder.path() / (figure.name + ".png")).first, 1000u) << figure.name;
}

// Draws one of the figures alone.
void draw_one(const PlasticityTables& tables, const std::string& name, const fs::path& folder) {
  for (const Figure& figure : plasticity_figures(tables, {}))
    if (figure.name == name) draw(figure, folder, light_theme());
}

TEST(PlasticityFigures, BucketHeatmapDataAreTheMeansByHand) {
  const TemporaryFolder folder;
  const PlasticityTables tables = synthetic::tables({.layers = 3, .q_heads = 2, .buckets = 4, .missing = 0.2});
  draw_one(tables, "bucket_heatmap", folder.path());
  const auto data = columns_of(folder.path() / "bucket_heatmap.cells.dat");
  const auto q = numbers_of(data.at("q_bucket")), k = numbers_of(data.at("k_bucket")),
             value = numbers_of(data.at("value"));
  ASSERT_EQ(value.size(), 3u);  // (2,1), (3,1), (3,2): key bucket 0 is empty
  for (std::size_t i = 0; i < value.size(); ++i) {
    double sum = 0, count = 0;
    for (std::size_t row = 0; row < tables.cells.rows(); ++row) {
      const double cell = tables.cells.numbers("plasticity")[row];
      if (tables.cells.numbers("q_bucket")[row] != q[i] || tables.cells.numbers("k_bucket")[row] != k[i] ||
          std::isnan(cell))
        continue;
      sum += cell;
      ++count;
    }
    EXPECT_NEAR(value[i], sum / count, 1e-15);
  }
  EXPECT_THAT(columns_of(folder.path() / "bucket_heatmap.empty.dat").at("q_bucket"), ElementsAre("1", "2", "3"));
}

TEST(PlasticityFigures, MapMarksHeadsWithoutARowOrAValue) {
  PlasticityTables tables = synthetic::tables({});
  tables.heads = Table("heads");
  tables.heads.add("layer", Integers{4, 4, 5})
      .add("q_head", Integers{0, 1, 1})
      .add("ap_overall", Numbers{0.5, std::nan(""), 0.25});
  const TemporaryFolder folder;
  draw_one(tables, "plasticity_map", folder.path());
  const auto present = columns_of(folder.path() / "plasticity_map.tiles.dat");
  EXPECT_THAT(present.at("x"), ElementsAre("4", "5"));
  EXPECT_THAT(present.at("value"), ElementsAre("0.5", "0.25"));
  const auto absent = columns_of(folder.path() / "plasticity_map.empty.dat");
  EXPECT_THAT(absent.at("x"), ElementsAre("4", "5"));
  EXPECT_THAT(absent.at("y"), ElementsAre("1", "0"));
}

TEST(PlasticityFigures, RankingGoesFromMostToLeastAndNamesTheEnds) {
  const PlasticityTables tables = synthetic::tables({.layers = 10, .q_heads = 8, .intervals = true});
  const TemporaryFolder folder;
  draw_one(tables, "plasticity_ranked", folder.path());
  const auto data = columns_of(folder.path() / "plasticity_ranked.dat");
  auto expected = tables.heads.numbers("ap_overall");
  std::sort(expected.rbegin(), expected.rend());
  const auto value = numbers_of(data.at("value"));
  ASSERT_EQ(value, expected);
  const auto low = numbers_of(data.at("low")), high = numbers_of(data.at("high"));
  for (std::size_t i = 0; i < value.size(); ++i) EXPECT_TRUE(low[i] <= value[i] && value[i] <= high[i]);
  const std::string svg = bytes_of(folder.path() / "plasticity_ranked.svg");
  EXPECT_THAT(svg, HasSubstr("highest: " + data.at("name").front() + ", "));
  EXPECT_THAT(svg, HasSubstr(", " + data.at("name").back() + "<"));
}

TEST(PlasticityFigures, EveryPointOfALayerStandsBesideIt) {
  const TemporaryFolder folder;
  draw_one(synthetic::tables({.layers = 3, .q_heads = 9}), "plasticity_by_layer", folder.path());
  const auto data = columns_of(folder.path() / "plasticity_by_layer.points.dat");
  const auto layer = numbers_of(data.at("layer")), x = numbers_of(data.at("x"));
  std::set<double> places;
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_LE(std::abs(x[i] - layer[i]), 0.3);
    places.insert(x[i]);
  }
  EXPECT_EQ(places.size(), 27u);  // no point hides another
}

TEST(PlasticityFigures, FewerThanFourHeadsHaveNoQuarters) {
  for (const auto& [heads, shown] : {std::pair<std::int64_t, bool>{3, false}, {4, true}}) {
    const auto figures = plasticity_figures(synthetic::tables({.layers = 2, .q_heads = heads}), {});
    EXPECT_EQ(std::ranges::count(legend_of(figures[1]), "middle 50 % of heads"), shown ? 1 : 0) << heads;
  }
}

TEST(PlasticityFigures, HeadZeroAndTheFirstQueryBucketAreAtTheTop) {
  const auto figures = plasticity_figures(synthetic::tables({}), {.per_head = true});
  for (const std::size_t i : {0u, 3u, 7u}) EXPECT_TRUE(figures[i].panels[0].y.reversed) << figures[i].name;
  EXPECT_TRUE(comparison_figures(synthetic::comparison({}))[1].panels[0].y.reversed);
}

// Two decimals would be the same everywhere.
TEST(PlasticityFigures, NarrowMapsHaveAThirdDecimal) {
  PlasticityTables tables;
  tables.heads.add("layer", Integers{0}).add("q_head", Integers{0}).add("ap_overall", Numbers{0.98});
  tables.components.add("layer", Integers{0}).add("q_head", Integers{0}).add("weight", Numbers{1});
  tables.cells.add("layer", Integers{0, 0}).add("q_head", Integers{0, 0}).add("q_bucket", Integers{1, 2});
  tables.cells.add("k_bucket", Integers{0, 0}).add("plasticity", Numbers{0.981, 0.984});
  EXPECT_EQ(plasticity_figures(tables, {})[3].panels[0].labels[1].text[0], "0.984");
}

// Heads whose gap is: found but small, found and large, without an error, large but not found, neither. The fourth is
// beyond 1.96 errors, which is not enough among four tests.
PlasticityTables checked_heads() {
  PlasticityTables tables = synthetic::tables({});
  tables.checks = Table("checks");
  tables.checks->add("layer", Integers{0, 1, 2, 3, 4}).add("q_head", Integers{1, 2, 3, 4, 5});
  tables.checks->add("ap_empirical", Numbers{0.5, 0.6, 0.7, 0.8, 0.9});
  tables.checks->add("ap_gap", Numbers{0.01, -0.2, 0.1, 0.1, 0.001});
  tables.checks->add("ap_gap_se", Numbers{0.001, 0.05, std::nan(""), 0.05, 0.1});
  return tables;
}

TEST(GaussianCheck, MarksAndNamesTheHeadsWhoseGapIsLargeAndFound) {
  const TemporaryFolder folder;
  draw_one(checked_heads(), "gaussian_check", folder.path());
  const auto apart = columns_of(folder.path() / "gaussian_check.apart.dat");
  EXPECT_THAT(apart.at("name"), ElementsAre("L1H2"));
  EXPECT_NEAR(numbers_of(apart.at("ap_overall"))[0], 0.4, 1e-15);
  EXPECT_NEAR(numbers_of(apart.at("bar_high"))[0], 0.4 + 1.959963984540054 * 0.05, 1e-15);
  const auto agreeing = columns_of(folder.path() / "gaussian_check.agreeing.dat");
  EXPECT_THAT(agreeing.at("name"), ElementsAre("L0H1", "L2H3", "L3H4", "L4H5"));
  const std::string svg = bytes_of(folder.path() / "gaussian_check.svg");
  EXPECT_THAT(svg, HasSubstr(">L1H2<"));
  EXPECT_THAT(svg, Not(HasSubstr(">L0H1<")));
  EXPECT_THAT(svg, HasSubstr("larger than 0.02, and found (FDR 5 %) (1)"));
  EXPECT_THAT(svg, HasSubstr("smaller, or not found (4)"));
}

TEST(GaussianCheck, MapShowsTheGap) {
  const TemporaryFolder folder;
  draw_one(checked_heads(), "gaussian_gap", folder.path());
  EXPECT_THAT(columns_of(folder.path() / "gaussian_gap.tiles.dat").at("value"),
              ElementsAre("0.01", "-0.2", "0.1", "0.1", "0.001"));
}

TEST(GaussianCheck, IsLeftOutOfRunsWithoutChecks) {
  EXPECT_EQ(plasticity_figures(synthetic::tables({}), {}).size(), names.size());
  EXPECT_EQ(plasticity_figures(synthetic::tables({.checks = true}), {}).size(), names.size() + names_of_checks.size());
}

TEST(PlasticityFigures, TitleIsShownAsItIs) {
  PlasticityTables tables = synthetic::tables({});
  tables.title = "my_model's `date`";
  const TemporaryFolder folder;
  draw_one(tables, "plasticity_map", folder.path());
  EXPECT_THAT(bytes_of(folder.path() / "plasticity_map.svg"), HasSubstr("my_model's `date`"));
}

PlasticityComparison two_heads(double difference) {
  PlasticityComparison comparison{.name_1 = "first_run", .name_2 = "second_run"};
  comparison.table.add("layer", Integers{0, 3}).add("q_head", Integers{1, 2}).add("ap_1", Numbers{0.2, 0.5});
  comparison.table.add("ap_2", Numbers{0.21, 0.9}).add("difference", Numbers{0.21 - 0.2, difference});
  comparison.table.add("low", Numbers{-0.02, 0.3}).add("high", Numbers{0.04, 0.5}).add("significant", Integers{0, 1});
  return comparison;
}

TEST(ComparisonFigure, BarsAreTheIntervalOfTheDifferenceAtTheFirstValue) {
  const TemporaryFolder folder;
  const auto files = draw(comparison_figures(two_heads(0.9 - 0.5)), folder.path(), light_theme()).files;
  EXPECT_EQ(files.front().filename(), "plasticity_comparison.png");
  const auto data = columns_of(folder.path() / "plasticity_comparison.different.dat");
  EXPECT_THAT(data.at("name"), ElementsAre("L3H2"));
  EXPECT_NEAR(numbers_of(data.at("bar_low"))[0], 0.5 + 0.3, 1e-15);
  EXPECT_NEAR(numbers_of(data.at("bar_high"))[0], 0.5 + 0.5, 1e-15);
  EXPECT_THAT(columns_of(folder.path() / "plasticity_comparison.same.dat").at("name"), ElementsAre("L0H1"));
  const std::string svg = bytes_of(folder.path() / "plasticity_comparison.svg");
  EXPECT_THAT(svg, HasSubstr(">L3H2<"));
  EXPECT_THAT(svg, Not(HasSubstr(">L0H1<")));
  EXPECT_THAT(svg, HasSubstr("plasticity, first_run"));
  EXPECT_THAT(svg, HasSubstr("plasticity, second_run"));
  const auto map = columns_of(folder.path() / "plasticity_difference.tiles.dat");
  EXPECT_NEAR(numbers_of(map.at("value"))[1], 0.4, 1e-15);
}

TEST(ComparisonFigure, TheLegendNamesTheDiagonalAndTheBars) {
  const auto legend = [](bool intervals) {
    return legend_of(comparison_figures(synthetic::comparison({.intervals = intervals}))[0]);
  };
  EXPECT_THAT(legend(true), ElementsAre("no difference found", "different (FDR 5 %)", "equal in both",
                                        "95 % interval of the difference"));
  EXPECT_THAT(legend(false), ElementsAre("no difference found", "different (FDR 5 %)", "equal in both"));
}

TEST(ComparisonFigure, RefusesDifferencesOfTheOtherSign) {
  try {
    comparison_figures(two_heads(0.5 - 0.9));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::input);
    EXPECT_THAT(error.what(), HasSubstr("L3H2"));
  }
}

}  // namespace
}  // namespace headscope
