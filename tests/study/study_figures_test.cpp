#include "study/study_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "figures/figure_files.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using headscope::test::TemporaryFolder;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

const double missing = std::nan("");
const std::vector<std::string> names = {
    "1_loss",     "2_key_pr_causal",     "3_per_layer",       "4_causal_decomposition",
    "5_gamma_cv", "6_effects_over_time", "7_effects_by_layer"};

struct Shape {
  std::size_t layers = 6, probes = 10;
  bool bands = false, losses = true, gamma = true, prs = true;
  std::string conditions = "ABC";
  double scale = 1;
  bool dark = false;
};

SeedMeans means_of(const Numbers& values, bool bands) {
  SeedMeans means{values, {}, {}};
  for (const double value : values) {
    means.low.push_back(bands ? value - 0.5 : missing);
    means.high.push_back(bands ? value + 0.5 : missing);
  }
  return means;
}

StudyCurves curves(const Shape& shape, std::size_t condition) {
  StudyCurves result;
  result.tag = known_conditions()[condition].tag;
  result.letter = known_conditions()[condition].letter;
  result.name = known_conditions()[condition].name;
  result.colour = condition;
  Numbers loss, val_loss, mean_pr, layer_pr, gamma_cv;
  for (std::size_t probe = 0; probe < shape.probes; ++probe) {
    const auto at = static_cast<double>(probe);
    result.tokens.push_back(static_cast<std::int64_t>(probe) * 983040);
    loss.push_back(shape.losses && probe > 0 ? 3 + 4 / at : missing);
    val_loss.push_back(shape.losses && probe > 0 ? 3.1 + 4 / at : missing);
    mean_pr.push_back(shape.prs ? shape.scale * (60 + 30 / (at + 1) + static_cast<double>(condition)) : missing);
    gamma_cv.push_back(0.01 * at);
  }
  result.gamma_cv.assign(shape.gamma ? shape.layers : 0, means_of(gamma_cv, shape.bands));
  for (std::size_t layer = 0; layer < shape.layers; ++layer)
    layer_pr.push_back(shape.prs ? shape.scale * (60 + static_cast<double>(layer * condition)) : missing);
  result.loss = means_of(loss, shape.bands);
  result.val_loss = means_of(val_loss, shape.bands);
  result.mean_pr = means_of(mean_pr, shape.bands);
  result.layer_pr = means_of(layer_pr, shape.bands);
  result.seeds = shape.bands ? 3 : 1;
  return result;
}

StudyFigureData figure_data(const Shape& shape) {
  StudyFigureData data;
  data.title = "qk_norm's study";
  for (std::size_t i = 0; i < 5; ++i)
    if (shape.conditions.find("ABCDE"[i]) != std::string::npos) data.conditions.push_back(curves(shape, i));
  for (std::size_t probe = 0; probe < shape.probes; ++probe)
    data.tokens.push_back(static_cast<std::int64_t>(probe) * 983040);
  const auto over_time = [&](double slope) {
    Numbers values;
    for (std::size_t probe = 0; probe < shape.probes; ++probe)
      values.push_back(shape.prs ? shape.scale * slope * static_cast<double>(probe) : missing);
    return means_of(values, shape.bands);
  };
  const auto there = [&](const char* letters) {
    return shape.conditions.find(letters[0]) != std::string::npos &&
           shape.conditions.find(letters[1]) != std::string::npos;
  };
  data.notes = {"both since 1.0 M tokens"};
  Numbers gamma, norm;
  for (std::size_t layer = 0; layer < shape.layers; ++layer) {
    gamma.push_back(shape.prs ? shape.scale * (static_cast<double>(layer) - 1) : missing);
    norm.push_back(shape.prs ? shape.scale * -0.5 * static_cast<double>(layer) : missing);
  }
  if (there("AB"))
    data.effects.push_back(
        {"gamma", "A − B", over_time(1), means_of(gamma, shape.bands), 1.5, shape.bands ? 0.3 : missing, false});
  if (there("BC"))
    data.effects.push_back(
        {"norm", "B − C", over_time(-0.5), means_of(norm, shape.bands), 1.5, shape.bands ? 0.3 : missing, false});
  if (there("AC"))
    data.effects.push_back(
        {"total", "A − C", over_time(0.5), means_of(gamma, shape.bands), 1.5, shape.bands ? 0.3 : missing, false});
  if (there("AD"))
    data.effects.push_back(
        {"gamma_decay", "A − A₀", over_time(0.2), means_of(norm, shape.bands), 1.5, shape.bands ? 0.3 : missing, true});
  return data;
}

TEST(StudyFigures, WritesEveryFigureInBothFormatsWithItsScript) {
  const TemporaryFolder folder;
  std::set<std::string> written;
  for (const fs::path& file : draw(study_figures(figure_data({})), folder.path(), light_theme()).files)
    written.insert(file.filename());
  for (const std::string& name : names) {
    for (const char* ending : {".png", ".svg", ".gp"}) EXPECT_TRUE(written.contains(name + ending)) << name << ending;
    EXPECT_EQ(png_size(folder.path() / (name + ".png")).first, 1600u) << name;
  }
}

// Every study, however thin, must draw without a word from gnuplot.
class EveryStudy : public ::testing::TestWithParam<std::pair<const char*, Shape>> {};
INSTANTIATE_TEST_SUITE_P(
    StudyFigures, EveryStudy,
    ::testing::Values(std::pair{"OneProbe", Shape{.probes = 1}}, std::pair{"TwoProbes", Shape{.probes = 2}},
                      std::pair{"OneLayer", Shape{.layers = 1, .dark = true}},
                      std::pair{"OneOfEach", Shape{.layers = 1, .probes = 1, .conditions = "A"}},
                      std::pair{"NoLosses", Shape{.losses = false}}, std::pair{"NoGamma", Shape{.gamma = false}},
                      std::pair{"NoRatios", Shape{.prs = false}}, std::pair{"NoA", Shape{.conditions = "BC"}},
                      std::pair{"NoB", Shape{.conditions = "AC"}}, std::pair{"NoC", Shape{.conditions = "AB"}},
                      std::pair{"OnlyC", Shape{.conditions = "C"}}, std::pair{"Nothing", Shape{.conditions = ""}},
                      std::pair{"Seeds", Shape{.bands = true, .dark = true}},
                      std::pair{"SeedsOneProbe", Shape{.probes = 1, .bands = true}},
                      std::pair{"Controls", Shape{.bands = true, .conditions = "ABCDE"}},
                      std::pair{"AllEqual", Shape{.layers = 4, .scale = 0}}, std::pair{"Huge", Shape{.scale = 1e306}},
                      std::pair{"Tiny", Shape{.scale = 1e-320}},
                      std::pair{"Deep", Shape{.layers = 80, .probes = 200, .bands = true}}),
    [](const auto& shape) { return shape.param.first; });

TEST_P(EveryStudy, DrawsWithoutWarnings) {
  const Shape shape = GetParam().second;
  const Theme& theme = shape.dark ? dark_theme() : light_theme();
  const TemporaryFolder folder;
  const auto figures = study_figures(figure_data(shape));
  ASSERT_EQ(figures.size(), names.size());
  EXPECT_EQ(draw(figures, folder.path(), theme).warnings, "");
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(figures[i].name, names[i]);
    EXPECT_GE(png_size(folder.path() / (names[i] + ".png")).first, 1000u);
  }
}

TEST(StudyFigures, DataAreTheValuesThatWereGiven) {
  const TemporaryFolder folder;
  const StudyFigureData data = figure_data({.layers = 3, .probes = 2, .bands = true});
  draw(study_figures(data), folder.path(), light_theme());
  const auto pr = columns_of(folder.path() / "2_key_pr_causal.b.dat");
  EXPECT_THAT(pr.at("tokens"), ElementsAre("0", "983040"));
  EXPECT_EQ(numbers_of(pr.at("mean_pr")), data.conditions[1].mean_pr.mean);
  EXPECT_EQ(numbers_of(pr.at("mean_pr_low")), data.conditions[1].mean_pr.low);
  const auto layers = columns_of(folder.path() / "3_per_layer.dat");
  EXPECT_EQ(numbers_of(layers.at("C")), data.conditions[2].layer_pr.mean);
  const auto effects = columns_of(folder.path() / "4_causal_decomposition.dat");
  EXPECT_EQ(numbers_of(effects.at("gamma_effect")), (Numbers{-1, 0, 1}));
  EXPECT_EQ(numbers_of(effects.at("norm_effect_high")), (Numbers{0.5, 0, -0.5}));
  const auto gamma = columns_of(folder.path() / "5_gamma_cv.dat");
  EXPECT_EQ(numbers_of(gamma.at("L2")), (Numbers{0, 0.01}));
  const auto over_time = columns_of(folder.path() / "6_effects_over_time.dat");
  EXPECT_EQ(numbers_of(over_time.at("effect1")), (Numbers{0, -0.5}));
  EXPECT_EQ(numbers_of(over_time.at("effect1_low")), (Numbers{-0.5, -1}));
  const auto by_layer = columns_of(folder.path() / "7_effects_by_layer.dat");
  EXPECT_EQ(numbers_of(by_layer.at("effect1_high")), (Numbers{0.5, 0, -0.5}));
}

// The texts beside the curves of a figure, from the bottom to the top.
std::vector<PlacedText> final_values(const StudyFigureData& data, std::size_t figure) {
  const Layout layout = lay_out(completed(study_figures(data)[figure]));
  std::vector<PlacedText> texts;
  for (const PlacedText& text : layout.texts)
    if (text.x > layout.panels.at(0).right()) texts.push_back(text);
  std::ranges::sort(texts, {}, &PlacedText::y);
  return texts;
}

TEST(StudyFigures, FinalValuesStandApartAtTheEndsOfTheCurves) {
  StudyFigureData data = figure_data({.scale = 1});
  for (auto& condition : data.conditions) condition.mean_pr.mean.back() = 60.004;  // all at one place
  const auto texts = final_values(data, 1);
  ASSERT_EQ(texts.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(texts[i].text, std::string(1, "ABC"[i]) + " 60.00");
    EXPECT_EQ(texts[i].colour.index, i);
    const double below = i > 0 ? texts[i - 1].y : -100;
    EXPECT_GE(texts[i].y - below, 14.9);  // a line of text
  }
}

TEST(StudyFigures, ACurveThatEndsEarlyHasNoLabelOverTheOthers) {
  StudyFigureData data = figure_data({});
  data.conditions[2] = curves({.probes = 4}, 2);
  const auto texts = final_values(data, 1);
  ASSERT_EQ(texts.size(), 2u);
  for (const PlacedText& text : texts) EXPECT_THAT(text.text, Not(HasSubstr("C ")));
}

TEST(StudyFigures, AConditionHasItsColourWhoeverElseIsThere) {
  for (const char* conditions : {"ABC", "BC", "C"}) {
    const Figure figure = study_figures(figure_data({.conditions = conditions}))[1];
    const Mark curve = mark_named(figure, "C no QK-Norm");
    EXPECT_EQ(curve.colour.role, Colour::category);
    EXPECT_EQ(curve.colour.index, 2u) << conditions;
    EXPECT_EQ(curve.data, "c");
    EXPECT_THAT(script_of(figure), HasSubstr("c using \"tokens\":\"mean_pr\" with lines lw 1.2 lc rgb category3"));
  }
}

TEST(StudyFigures, IntervalsAreNamedWithTheNumberOfSeeds) {
  const auto several = study_figures(figure_data({.bands = true})), one = study_figures(figure_data({}));
  for (const std::size_t i : {0, 1, 2, 3, 5, 6}) {
    EXPECT_THAT(legend_of(several[i]), Contains("95 % interval over 3 seeds")) << names[i];
    EXPECT_THAT(legend_of(one[i]), Not(Contains(HasSubstr("interval")))) << names[i];
  }
  EXPECT_THAT(several[4].notes, ElementsAre("mean over 3 seeds; 95 % intervals: at most ± 0.5"));
  EXPECT_THAT(one[4].notes, ElementsAre());
  StudyFigureData data = figure_data({.bands = true});
  data.conditions[1].seeds = 5;
  data.conditions[2].seeds = 1;
  EXPECT_THAT(legend_of(study_figures(data)[1]), Contains("95 % interval over 3 to 5 seeds"));
}

TEST(StudyFigures, TheFinalValueOfALongNameIsWhole) {
  StudyFigureData data = figure_data({.bands = true});
  data.conditions[0].letter = "QK_decay_of_the_gain";
  const Figure figure = study_figures(data)[1];
  EXPECT_THAT(figure.panels.front().labels.front().text.front(), MatchesRegex("QK_…ain [0-9.]+ ± [0-9.]+"));
}

TEST(StudyFigures, ACurveThatLiesOverAnotherIsThinner) {
  for (const std::size_t i : {0, 1}) {
    const Figure figure = study_figures(figure_data({}))[i];
    const double a = mark_named(figure, "A learned γ").width, b = mark_named(figure, "B γ = 1").width;
    EXPECT_GT(a, 1.4 * b);
    EXPECT_GT(b, 1.4 * mark_named(figure, "C no QK-Norm").width);
  }
}

TEST(StudyFigures, TrainingLossIsSaidToBeAMeanAndASingleOneIsNoLine) {
  const char* training = "training, mean since last probe";
  EXPECT_EQ(mark_named(study_figures(figure_data({}))[0], training).kind, Mark::Kind::line);
  const Figure figure = study_figures(figure_data({.probes = 2}))[0];  // the first probe has no loss
  EXPECT_EQ(mark_named(figure, training).kind, Mark::Kind::points);
  EXPECT_EQ(mark_named(figure, training).shape, mark_named(figure, "A learned γ").shape);
  EXPECT_NE(mark_named(figure, training).shape, mark_named(figure, "validation (right: final)").shape);
}

TEST(StudyFigures, AShortStudyCountsTokensInThousands) {
  for (const auto& [probes, label] : {std::pair<std::size_t, const char*>{2, "tokens (thousand)"}, {3, "tokens (M)"}})
    EXPECT_THAT(completed(study_figures(figure_data({.probes = probes}))[1]).panels[0].x.label, ElementsAre(label))
        << probes;
}

}  // namespace
}  // namespace headscope
