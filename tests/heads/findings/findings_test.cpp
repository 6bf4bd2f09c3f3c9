#include "heads/findings/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "heads/findings/planted.h"

namespace headscope {
namespace {

using test::HeadValue;
using test::plant;
using test::run_of;
using test::tracks_of;
using ::testing::HasSubstr;

// Every metric that a question asks for: keys dip, then sinks and gatherers part at step 20.
RunTracks whole_run(std::int64_t layers, std::size_t moments) {
  Tracks tracks = tracks_of({layers, 4, 8}, moments, "probe");
  NumpyGenerator generator(9);
  const auto noisy = [&](HeadValue value) {
    return [&generator, value](std::size_t moment, std::int64_t layer, std::int64_t head) {
      return value(moment, layer, head) * (1 + 0.02 * generator.uniform());
    };
  };
  const auto norm = [](std::size_t moment, std::int64_t layer, std::int64_t head) {
    if (moment == 0) return 8.0;
    if (moment == 1) return 7.0;
    return 4 + 0.2 * static_cast<double>(layer) + (head % 4 < 2 ? 6 : 0);
  };
  plant(tracks, "k_norm", noisy(norm));
  plant(tracks, "k_norm_std", noisy([](auto...) { return 0.5; }));
  plant(tracks, "q_norm", noisy([](auto...) { return 8.0; }));
  plant(tracks, "qk_ratio", noisy([&](auto m, auto l, auto h) { return 8 / norm(m, l, h / 2); }));
  plant(tracks, "entropy", noisy([&](auto m, auto l, auto h) { return 12 / norm(m, l, h / 2); }));
  plant(tracks, "k_pr", noisy([](std::size_t m, auto, auto) { return m < 2 ? 24 : 11.0; }));
  plant(tracks, "k_erank", noisy([](std::size_t m, auto, auto) { return m < 2 ? 28 : 13.0; }));
  plant(tracks, "k_pr_vector", noisy([](std::size_t m, auto, auto) { return m < 2 ? 22 : 9.0; }));
  plant(tracks, "k_axis", noisy([](auto, std::int64_t l, auto) { return l == 2 ? 0.95 : 0.4; }));
  plant(tracks, "k_top_share", noisy([](auto, std::int64_t l, auto) { return l == 2 ? 0.95 : 0.2; }));
  plant(tracks, "k_top_dim", [](auto, std::int64_t l, auto) { return static_cast<double>(l); });
  plant(tracks, "k_top_energy", noisy([](auto...) { return 0.3; }));
  plant(tracks, "k_max_abs_mean", noisy([](auto...) { return 3.0; }));
  plant(tracks, "k_cosine", noisy([](std::size_t m, auto, auto) { return m == 0 ? 0.02 : 0.5; }));
  return run_of(std::move(tracks));
}

std::size_t width_of(std::string_view line) {
  return static_cast<std::size_t>(
      std::ranges::count_if(line, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

TEST(Findings, AreJsonWithNumbersInFullAndRules) {
  const Findings findings = find(whole_run(12, 5));
  const nlohmann::ordered_json json = to_json(findings);
  EXPECT_EQ(json["volume_knob"], "neither");
  EXPECT_EQ(json["norm_split"]["begins"]["step"], 20);
  EXPECT_EQ(json["norm_split"]["between_share"].get<double>(), findings.norm_split.between_share);
  EXPECT_EQ(json["norm_split"]["share_over_time"].size(), json["norm_split"]["steps"].size());
  EXPECT_EQ(json["norm_entropy"]["high_norm_means_sharp"], "supported");
  EXPECT_EQ(json["norm_entropy"]["overall"]["rho"].get<double>(), findings.norm_entropy.overall.rho);
  EXPECT_EQ(json["rank_collapse"]["privileged_dimensions"].size(), 4U);
  EXPECT_EQ(json["rank_collapse"]["privileged_dimensions"][0]["dimension"], 2);
  EXPECT_EQ(json["rank_collapse"]["effective_rank"]["k_pr"]["middle"]["end"].get<double>(),
            findings.rank_collapse.curves[1].curve.end);
  EXPECT_EQ(json["growth"]["k_norm"]["mean"].get<double>(), findings.volume_knob.keys.mean);
  EXPECT_EQ(json["key_evolution"]["checkmark"], true);
  for (const char* question : {"norm_split", "norm_entropy", "rank_collapse", "growth", "key_evolution"}) {
    EXPECT_GT(json["rules"][question].size(), 1U) << question;
    EXPECT_TRUE(json[question]["sentence"].is_string()) << question;
    EXPECT_TRUE(json[question]["not_tracked"].empty()) << question;
  }
}

TEST(Findings, AreTheSameEveryTime) {
  EXPECT_EQ(to_json(find(whole_run(12, 5))).dump(), to_json(find(whole_run(12, 5))).dump());
}

TEST(Findings, FitATerminal) {
  const std::string text = to_terminal(find(whole_run(48, 5)));
  EXPECT_LE(std::ranges::count(text, '\n'), 30);
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    EXPECT_LE(width_of(std::string_view(text).substr(start, end - start)), 100U) << text;
    start = end + 1;
  }
  for (const char* label : {"Heads split ", "\nSharpness ", "\nRank ", "\nVolume knob ", "\nKey evolution "})
    EXPECT_THAT(text, HasSubstr(label));
}

TEST(Findings, AreMarkdownWithTheAnswerFirst) {
  const Findings findings = find(whole_run(12, 5));
  const std::string text = to_markdown(findings, "Run one");
  EXPECT_EQ(
      text.find("# Heads of Run one over training, measured on the fixed held-out batch (probe)\n\n12 layers, each "
                "with 4 key heads and 8 query heads; measured at 5 moments from step 0 to 40 (2,560 tokens). "),
      0U);
  for (const std::string& sentence :
       {findings.norm_split.sentence, findings.norm_entropy.sentence, findings.rank_collapse.sentence,
        findings.volume_knob.sentence, findings.key_evolution.sentence})
    EXPECT_THAT(text, HasSubstr("?\n\n" + sentence + "\n\n| "));
  EXPECT_THAT(text, HasSubstr("## Rules"));
  EXPECT_THAT(text, HasSubstr(std::string(key_evolution_rules.back().sentence)));
  EXPECT_EQ(text.find("nan"), std::string::npos);
}

// The training batches have more moments and other values; the fixed batch is taken all the same.
TEST(Findings, UseTheFixedBatchWheneverItIsThere) {
  RunTracks run = whole_run(4, 3);
  run.train = tracks_of({4, 4, 8}, 30);
  for (const Metric& metric : head_metrics()) plant(run.train, metric.name, [](auto...) { return 0.125; });
  EXPECT_EQ(to_json(find(run)).dump(), to_json(find(whole_run(4, 3))).dump());
  // Without it the training batches are named.
  run.probe = Tracks("probe");
  EXPECT_EQ(
      to_markdown(find(run), "tiny").find("# Heads of tiny over training, measured on training batches (train)\n"), 0U);
  // What only they have is taken from them, and said so.
  run.probe = tracks_of({4, 4, 8}, 3, "probe");
  plant(run.probe, "k_pr", [](auto...) { return 24.0; });
  const std::string text = to_markdown(find(run), "tiny");
  EXPECT_EQ(text.find("# Heads of tiny over training, measured on the fixed held-out batch (probe)\n"), 0U);
  EXPECT_THAT(text, HasSubstr("This is from training batches (train), at 30 moments from step 0 to 290"));
  EXPECT_THAT(text, HasSubstr("One-hot heads and privileged dimensions are from training batches (train)"));
}

TEST(Findings, OfOneMomentDoNotSpeakOfTraining) {
  const Findings findings = find(whole_run(12, 1));
  for (const std::string& text : {to_markdown(findings, "tiny"), to_terminal(findings)})
    for (const char* word : {"training", "since", "start", "grew", "grow", "evol", "moments", "begin", "lowest (step)",
                             "lose", "rises", "went"})
      EXPECT_THAT(text, ::testing::Not(HasSubstr(word)));
  EXPECT_EQ(to_markdown(findings, "tiny").find("# Heads of tiny, measured on the fixed held-out batch (probe)\n"), 0U);
  EXPECT_THAT(to_terminal(findings), HasSubstr("Keys by depth "));
  EXPECT_TRUE(to_json(findings)["volume_knob"].is_null());
}

// Two layers that differ, which a mean over the early third hides.
TEST(Findings, HaveEveryMetricOfEveryLayer) {
  Tracks tracks = tracks_of({6, 2, 4}, 2, "probe");
  for (const Metric& metric : head_metrics())
    plant(tracks, metric.name, [](std::size_t moment, std::int64_t layer, std::int64_t head) {
      return (layer == 0 ? 6.7 : 14.5) + (head % 2 == 0 ? -1 : 1) + 100 * static_cast<double>(moment);
    });
  const Findings findings = find(run_of(tracks));
  const std::string text = to_markdown(findings, "six");
  for (const Metric& metric : head_metrics()) {
    if (!metric.averaged) continue;
    EXPECT_THAT(text, HasSubstr(fmt::format("| `{}` |", metric.name)));
    const auto json = to_json(findings)["by_layer"]["layers"];
    EXPECT_NEAR(json[0][std::string(metric.name)]["start"].get<double>(), 6.7, 1e-12);
    EXPECT_NEAR(json[1][std::string(metric.name)]["end"].get<double>(), 114.5, 1e-12);
  }
  EXPECT_THAT(
      text,
      HasSubstr("## Every layer\n\nMeans over the heads of a layer at step 0 → at step 10, on the fixed held-out "));
  EXPECT_THAT(text, HasSubstr("\n| 0 | 6.7 → 107 |"));
  EXPECT_THAT(text, HasSubstr("\n| 1 | 14.5 → 114 |"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("`k_top_dim`")));
}

// What no run measured is null, said so, and never stops the rest.
TEST(Findings, OfARunWithNormsOnly) {
  Tracks tracks = tracks_of({6, 4, 8}, 3);
  plant(tracks, "k_norm", [](auto m, auto, auto) { return 8.0 + static_cast<double>(m); });
  plant(tracks, "k_norm_std", [](auto...) { return 1.0; });
  plant(tracks, "q_norm", [](auto...) { return 8.0; });
  plant(tracks, "qk_ratio", [](auto m, auto, auto) { return 8.0 / (8.0 + static_cast<double>(m)); });
  const Findings findings = find(run_of(tracks));
  const auto json = nlohmann::ordered_json::parse(to_json(findings).dump());  // as a reader of the file sees it
  EXPECT_EQ(json["volume_knob"], "keys");
  EXPECT_TRUE(json["norm_entropy"]["high_norm_means_sharp"].is_null());
  EXPECT_TRUE(json["norm_entropy"]["overall"]["rho"].is_null());
  EXPECT_TRUE(json["norm_entropy"]["rho_over_time"].is_null());
  EXPECT_TRUE(json["norm_entropy"]["clusters"]["found"].is_null());
  EXPECT_EQ(json["norm_entropy"]["not_tracked"], nlohmann::json({"entropy"}));
  EXPECT_TRUE(json["rank_collapse"]["effective_rank"]["k_pr"].is_null());
  EXPECT_TRUE(json["rank_collapse"]["one_hot_share"].is_null());
  EXPECT_TRUE(json["rank_collapse"]["privileged_dimensions"].is_null());
  EXPECT_TRUE(json["key_evolution"]["groups"]["final"]["k_cosine_end"].is_null());
  EXPECT_THAT(to_terminal(findings), HasSubstr("entropy was not tracked"));
  EXPECT_THAT(to_markdown(findings, "Norms"), HasSubstr("entropy was not tracked"));
}

TEST(Findings, AreDefinedForEveryDegenerateRun) {
  std::vector<RunTracks> runs = {RunTracks{}, run_of(tracks_of({1, 1, 1}, 1)), whole_run(1, 1), whole_run(2, 1),
                                 whole_run(1, 3)};
  Tracks unknown = tracks_of({5, 4, 8}, 3);
  for (const Metric& metric : head_metrics()) plant(unknown, metric.name, [](auto...) { return NAN; });
  runs.push_back(run_of(unknown));
  Tracks single = tracks_of({4, 1, 1}, 2), equal = tracks_of({4, 4, 4}, 2);
  for (const Metric& metric : head_metrics()) {
    plant(single, metric.name,
          [](auto m, auto l, auto) { return 1.0 + static_cast<double>(m) + static_cast<double>(l); });
    plant(equal, metric.name, [](auto...) { return 0.0; });
  }
  runs.push_back(run_of(single));
  runs.push_back(run_of(equal));
  for (const RunTracks& run : runs) {
    const Findings findings = find(run);
    EXPECT_FALSE(to_json(findings).dump().empty());
    for (const std::string& text : {to_terminal(findings), to_markdown(findings, "Little")}) {
      EXPECT_EQ(text.find("nan"), std::string::npos) << text;
      EXPECT_EQ(text.find("inf"), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace headscope
