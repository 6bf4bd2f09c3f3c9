#include "heads/figures/tracking_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "figures/figure_files.h"
#include "heads/figures/synthetic_tracks.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using headscope::test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> figure_names = {"norm_divergence",   "entropy_norm_scatter",  "effective_rank",
                                               "gamma_heatmap",     "key_norm_evolution",    "outlier_magnitude",
                                               "latent_redundancy", "key_magnitude_profile", "qk_ratio"};

Figure figure_named(const std::string& name, const RunTracks& tracks) {
  for (Figure& figure : tracking_figures({"run", &tracks}))
    if (figure.name == name) return completed(std::move(figure));
  ADD_FAILURE() << "no figure " << name;
  return {};
}

Table data_named(const Figure& figure, const std::string& name) {
  for (const FigureData& data : figure.data)
    if (data.name == name) return data.table;
  throw std::runtime_error(figure.name + " has no data " + name);
}

TEST(TrackingFigures, WritesEveryFigureInBothFormatsWithItsScript) {
  const RunTracks tracks = synthetic_tracks({});
  const TemporaryFolder folder;
  std::set<std::string> written;
  for (const fs::path& file : draw(tracking_figures({"a run", &tracks}), folder.path(), light_theme()).files)
    written.insert(file.filename());
  for (const std::string& name : figure_names) {
    for (const char* ending : {".png", ".svg", ".gp"}) EXPECT_TRUE(written.contains(name + ending)) << name << ending;
    EXPECT_EQ(png_size(folder.path() / (name + ".png")).first, 1600u) << name;
  }
  // As the files have it, and the script reads it.
  const auto columns = columns_of(folder.path() / "key_norm_evolution.dat");
  EXPECT_EQ(numbers_of(columns.at("L3")), tracks.train.of_layer("k_norm", 3));
  EXPECT_THAT(bytes_of(folder.path() / "key_norm_evolution.gp"), HasSubstr("k_norm = 'key_norm_evolution.dat'"));
}

// Every run, however thin, must draw without a word from gnuplot.
struct Case {
  const char* name;
  TrackShape shape;
  bool dark = false;
};
class EveryTrackedRun : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    TrackingFigures, EveryTrackedRun,
    ::testing::Values(
        Case{"OneMoment", {.layers = 5, .moments = 1}},
        Case{"TwoMoments", {.layers = 2, .moments = 2, .gains = false}, true},
        Case{"OneLayerOfOneDimension", {.layers = 1, .dimensions = 1}},
        Case{"OneOfEach", {.layers = 1, .key_heads = 1, .query_heads = 1, .dimensions = 1, .moments = 1}},
        Case{"Constant", {.constant = true}}, Case{"NothingMeasured", {.moments = 0}}, Case{"AllZero", {.scale = 0}},
        Case{"Tiny", {.scale = 1e-320}}, Case{"Huge", {.scale = 1e306}},
        Case{"ManyHeads", {.layers = 12, .key_heads = 8, .query_heads = 16, .tokens_per_moment = 1 << 20}, true}),
    [](const auto& shape) { return shape.param.name; });

TEST_P(EveryTrackedRun, DrawsWithoutWarnings) {
  const RunTracks tracks = synthetic_tracks(GetParam().shape);
  const Theme& theme = GetParam().dark ? dark_theme() : light_theme();
  const TemporaryFolder folder;
  const auto figures = tracking_figures({"qk_norm's run", &tracks});
  ASSERT_EQ(figures.size(), figure_names.size());
  EXPECT_EQ(draw(figures, folder.path(), theme).warnings, "");
  for (std::size_t i = 0; i < figure_names.size(); ++i) {
    EXPECT_EQ(figures[i].name, figure_names[i]);
    EXPECT_GE(png_size(folder.path() / (figure_names[i] + ".png")).first, 1000u);
  }
}

TEST(TrackingFigures, CurvesOfHeadsAreTheValuesThatWereTracked) {
  const RunTracks tracks = synthetic_tracks({.layers = 3, .moments = 4});
  const Table layer = data_named(figure_named("norm_divergence", tracks), "layer2");
  EXPECT_EQ(layer.integers("step"), (Integers{0, 10, 20, 30}));
  EXPECT_EQ(layer.integers("tokens"), (Integers{0, 4096, 8192, 12288}));
  EXPECT_EQ(layer.numbers("K1"), tracks.train.of_head("k_norm", 2, 1));
}

TEST(TrackingFigures, PanelsAreTheFirstAndTheLastLayerAndSomeBetween) {
  const RunTracks tracks = synthetic_tracks({.layers = 22, .moments = 2});
  for (const char* name : {"norm_divergence", "gamma_heatmap"}) {
    std::vector<std::string> panels;
    for (const FigureData& data : figure_named(name, tracks).data) panels.push_back(data.name);
    EXPECT_THAT(panels, ElementsAre("layer0", "layer3", "layer6", "layer9", "layer12", "layer15", "layer18", "layer21"))
        << name;
  }
}

TEST(TrackingFigures, AGroupIsTheMeanAndTheQuartilesOfAllItsHeads) {
  RunTracks tracks = synthetic_tracks({.layers = 6, .moments = 2});
  const double values[] = {1, 2, 3, 10};  // layers 2 and 3 are the middle third
  for (std::int64_t i = 0; i < 4; ++i) tracks.train.set("k_pr", 1, 2 + i / 2, i % 2, values[i]);
  const Table table = data_named(figure_named("effective_rank", tracks), "k_pr");
  EXPECT_EQ(table.numbers("middle")[1], 4);
  EXPECT_EQ(table.numbers("middle_q25")[1], 1.75);  // numpy.percentile([1, 2, 3, 10], [25, 75])
  EXPECT_EQ(table.numbers("middle_q75")[1], 4.75);
}

TEST(TrackingFigures, AFewHeadsAreShownInsteadOfTheirQuartiles) {
  const RunTracks few = synthetic_tracks({.layers = 4, .moments = 3});  // one layer of two key heads in a group
  const Figure figure = figure_named("effective_rank", few);
  EXPECT_EQ(data_named(figure, "k_pr").numbers("L3K1"), few.train.of_head("k_pr", 3, 1));
  EXPECT_FALSE(data_named(figure, "k_pr").has("early_q25"));
  EXPECT_THAT(legend_of(figure), ElementsAre("early L0–1", "middle L2", "final L3", "group mean", "each head"));
  const RunTracks many = synthetic_tracks({.layers = 6, .moments = 3});
  EXPECT_FALSE(data_named(figure_named("effective_rank", many), "k_pr").has("L3K1"));
  EXPECT_THAT(legend_of(figure_named("effective_rank", many)), ::testing::Contains("middle 50 % of heads"));
}

TEST(TrackingFigures, ThinCurvesOfAFewLayersHaveTheirNamesBeside) {
  const auto names = [](std::int64_t layers) {
    const RunTracks tracks = synthetic_tracks({.layers = layers, .moments = 3});
    const Figure figure = figure_named("latent_redundancy", tracks);
    EXPECT_THAT(legend_of(figure), ::testing::Contains("each layer")) << layers;
    std::vector<std::string> found;
    for (const Label& label : figure.panels[0].labels) found.push_back(label.text[0]);
    return found;
  };
  EXPECT_THAT(names(4), ElementsAre("L0", "L1"));  // layers 2 and 3 are groups of their own
  EXPECT_THAT(names(22), ElementsAre());           // no room
}

TEST(TrackingFigures, GrowthIsRelativeToTheStart) {
  RunTracks tracks = synthetic_tracks({.layers = 3, .key_heads = 1, .query_heads = 1, .moments = 3});
  for (std::size_t moment = 0; moment < 3; ++moment)
    tracks.train.set("k_norm", moment, 1, 0, 4 + 2 * static_cast<double>(moment));
  const Table table = data_named(figure_named("qk_ratio", tracks), "k_norm_growth");
  EXPECT_EQ(table.numbers("L1"), (Numbers{1, 1.5, 2}));
  EXPECT_EQ(table.numbers("middle"), (Numbers{1, 1.5, 2}));
}

TEST(TrackingFigures, AScatterPairsAQueryHeadWithItsKeyHead) {
  const RunTracks tracks = synthetic_tracks({.layers = 2, .key_heads = 2, .query_heads = 4, .moments = 7});
  const Figure figure = figure_named("entropy_norm_scatter", tracks);
  ASSERT_EQ(figure.data.size(), 4u);  // moments 0, 2, 4, 6
  const Table second = data_named(figure, "m1");
  ASSERT_EQ(second.rows(), 8u);
  EXPECT_EQ(second.integers("layer")[6], 1);
  EXPECT_EQ(second.integers("q_head")[6], 2);
  EXPECT_EQ(second.numbers("k_norm")[6], tracks.train.of_head("k_norm", 1, 1)[2]);  // 4 heads read 2
  EXPECT_EQ(second.numbers("entropy")[6], tracks.train.of_head("entropy", 1, 2)[2]);
}

TEST(TrackingFigures, TheGainsAreThoseOfTheRun) {
  const RunTracks tracks = synthetic_tracks({.layers = 2, .dimensions = 3, .moments = 2});
  const Table layer = data_named(figure_named("gamma_heatmap", tracks), "layer1");
  EXPECT_THAT(layer.integers("dimension"), ElementsAre(0, 1, 2, 0, 1, 2));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(layer.numbers("gain")[3 + i], tracks.gains[3].k[i], 0.5e-5);
}

TEST(TrackingFigures, TheColoursOfGainsReachAsFarAsTheGainsOnEachSideOfOne) {
  RunTracks tracks = synthetic_tracks({.layers = 1, .dimensions = 2, .moments = 2});
  for (LayerGains& gains : tracks.gains) gains.k = {0.9, 1.5};
  const Figure figure = figure_named("gamma_heatmap", tracks);
  EXPECT_EQ(figure.colours->colours, ColourScale::diverging);
  EXPECT_THAT(script_of(figure), HasSubstr("set cbrange [0.9:1.5]"));
}

TEST(TrackingFigures, TheReferenceIsTheRootOfTheHeadDimension) {
  const Figure figure = figure_named("key_norm_evolution", synthetic_tracks({.dimensions = 49}));
  EXPECT_EQ(figure.panels.at(0).references.at(0).y, 7);
  EXPECT_THAT(figure.panels[0].labels.back().text, ElementsAre("√dₖ: norm", "without gain"));
  EXPECT_TRUE(figure_named("key_norm_evolution", synthetic_tracks({.gains = false})).panels.at(0).references.empty());
}

TEST(TrackingFigures, TheProfileIsTheLastMomentWithTheFirst) {
  const RunTracks tracks = synthetic_tracks({.layers = 3, .moments = 5});
  const Table table = data_named(figure_named("key_magnitude_profile", tracks), "layers");
  EXPECT_EQ(table.numbers("final")[2], tracks.train.of_layer("k_norm", 2).back());
  EXPECT_EQ(table.numbers("start")[2], tracks.train.of_layer("k_norm", 2).front());
}

// A colour means the same depth in every figure and theme.
TEST(TrackingFigures, EarlyIsBlueMiddleGreenAndFinalRed) {
  const RunTracks tracks = synthetic_tracks({.layers = 9});
  for (const char* name : {"key_norm_evolution", "key_magnitude_profile", "entropy_norm_scatter", "qk_ratio"}) {
    const Figure figure = figure_named(name, tracks);
    const std::vector<std::string> groups = {"early L0–2", "middle L3–5", "final L6–8"};
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const Mark mark = mark_named(figure, groups[i]);
      EXPECT_EQ(mark.colour.role, Colour::depth) << name;
      EXPECT_EQ(mark.colour.index, i) << name;
    }
    for (const char* colour : {"early", "middle", "final"})
      EXPECT_THAT(script_of(figure), ::testing::ContainsRegex(std::string("lc rgb (faded\\()?") + colour)) << name;
  }
  EXPECT_THAT(style_commands(light_theme()).text(),
              HasSubstr("early = '#0072b2'; middle = '#009e73'; final = '#cc3311'"));
  EXPECT_THAT(style_commands(dark_theme()).text(),
              HasSubstr("early = '#56b4e9'; middle = '#4fd1a5'; final = '#ee4b3a'"));
}

TEST(TrackingFigures, WhatWasNotTrackedIsSaid) {
  RunTracks tracks;
  tracks.probe.counts = {2, 1, 1};
  tracks.probe.moments = {{0, 0}, {5, 500}};
  tracks.probe.set("k_cosine", 0, 0, 0, 0.5);
  tracks.probe.set("k_cosine", 1, 0, 0, 0.6);
  for (const std::string& name : figure_names) {
    const std::string script = script_of(figure_named(name, tracks));
    if (name == "latent_redundancy")
      EXPECT_THAT(script, Not(HasSubstr("not tracked"))) << name;
    else if (name == "gamma_heatmap")
      EXPECT_THAT(script, HasSubstr("no learned gain")) << name;
    else
      EXPECT_THAT(script, HasSubstr("not tracked in this run")) << name;
  }
}

TEST(TrackingFigures, AMetricComesFromTheSourceThatHasIt) {
  RunTracks tracks = synthetic_tracks({.layers = 1, .key_heads = 1, .query_heads = 1, .moments = 6});
  tracks.probe.counts = tracks.train.counts;
  tracks.probe.moments = {{0, 0}, {50, 20480}};
  for (std::size_t i = 0; i < 2; ++i) {
    tracks.probe.set("k_erank", i, 0, 0, 3);
    tracks.probe.set("k_norm", i, 0, 0, 99);
  }
  tracks.train = [&] {  // without the cosine
    Tracks less("train");
    less.counts = tracks.train.counts;
    less.moments = tracks.train.moments;
    for (std::size_t i = 0; i < 6; ++i) less.set("k_norm", i, 0, 0, 8);
    return less;
  }();
  for (std::size_t i = 0; i < 2; ++i) tracks.probe.set("k_cosine", i, 0, 0, 0.25);
  EXPECT_EQ(data_named(figure_named("latent_redundancy", tracks), "k_cosine").rows(), 2u);
  EXPECT_EQ(data_named(figure_named("key_norm_evolution", tracks), "k_norm").numbers("L0"), Numbers(6, 8.0));
}

TEST(TrackingFigures, MissingValuesAreLeftOut) {
  RunTracks tracks = synthetic_tracks({.layers = 3, .moments = 4});
  const double missing = std::nan("");
  for (std::int64_t layer = 0; layer < 3; ++layer)
    for (std::int64_t head = 0; head < 2; ++head) tracks.train.set("k_norm", 1, layer, head, missing);
  tracks.train.set("k_norm", 2, 0, 0, missing);
  const Table table = data_named(figure_named("key_norm_evolution", tracks), "k_norm");
  EXPECT_EQ(table.integers("step"), (Integers{0, 20, 30}));                    // at step 10 nothing was measured
  EXPECT_EQ(table.numbers("L0")[1], tracks.train.of_head("k_norm", 0, 1)[2]);  // the other head alone
  const TemporaryFolder folder;
  EXPECT_EQ(draw(tracking_figures({"", &tracks}), folder.path(), light_theme()).warnings, "");
}

// Revisions of a published model, whose tokens nobody says.
TEST(TrackingFigures, RevisionsAreDrawnOverTheirUpdates) {
  RunTracks tracks = synthetic_tracks({.layers = 2, .moments = 6});
  const auto course_of = [&](const std::vector<std::int64_t>& steps) {
    for (std::size_t i = 0; i < steps.size(); ++i) tracks.train.moments[i] = {steps[i], 0};
    return figure_named("key_norm_evolution", tracks).panels.at(0);
  };
  const Panel even = course_of({0, 100, 200, 300, 400, 500});
  EXPECT_FALSE(even.x.log);
  EXPECT_THAT(even.x.label, ElementsAre("updates"));
  EXPECT_EQ(even.marks.at(0).x, "step");
  const Panel uneven = course_of({0, 1, 16, 512, 10000, 143000});
  EXPECT_TRUE(uneven.x.log);
  EXPECT_EQ(uneven.x.low, 1);
  const TemporaryFolder folder;
  EXPECT_EQ(draw(tracking_figures({"", &tracks}), folder.path(), light_theme()).warnings, "");
}

TEST(TrackingFigures, LongRunsAreThinned) {
  const RunTracks tracks = synthetic_tracks({.layers = 9, .moments = 1000, .tokens_per_moment = 10});
  for (const Figure& figure : tracking_figures({"", &tracks})) {
    for (const FigureData& data : figure.data) {
      EXPECT_LE(data.table.rows(), figure.name == "gamma_heatmap" ? 8192u : 300u) << figure.name;
      if (!data.table.has("tokens")) continue;
      EXPECT_EQ(data.table.integers("tokens").front(), 0) << figure.name;
      EXPECT_EQ(data.table.integers("tokens").back(), 9990) << figure.name;
    }
  }
}

}  // namespace
}  // namespace headscope
