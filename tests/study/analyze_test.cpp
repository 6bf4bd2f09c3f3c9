#include "study/analyze.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "core/atomic_file.h"
#include "run/names.h"
#include "study/study_text.h"
#include "study/synthetic.h"
#include "support/expect_error.h"
#include "support/shared_folder.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;
using test::expect_error;
using test::TemporaryFolder;
namespace fs = std::filesystem;

const std::vector<std::string> figure_names = {
    "1_loss",     "2_key_pr_causal",     "3_per_layer",       "4_causal_decomposition",
    "5_gamma_cv", "6_effects_over_time", "7_effects_by_layer"};

AnalyzeJob job_of(std::vector<fs::path> folders, const fs::path& out) {
  AnalyzeJob job;
  job.folders = std::move(folders);
  job.folder.out = out;
  job.folder.command_line = "headscope study";
  return job;
}

ordered_json json_of(const fs::path& file) {
  return ordered_json::parse(read_file(file));
}

std::vector<MeanInterval> losses_of(double a, double b, double c) {
  return {MeanInterval{.mean = a}, MeanInterval{.mean = b}, MeanInterval{.mean = c}};
}

// Only what the three printed digits show is said.
TEST(Analyze, RunsThatShareNoProbeButTheFirstAreRefused) {
  const TemporaryFolder folder;
  synthetic::write_seed(folder / "data", 65, 60, 63);
  ConditionResults other = synthetic::results({"QK", 65});
  for (std::int64_t& tokens : other.tokens) tokens += tokens / 2;
  synthetic::write(other, folder / "data");
  other = synthetic::results({"QK_frozen", 65});
  for (std::int64_t& tokens : other.tokens) tokens += tokens / 4;
  synthetic::write(other, folder / "data");
  test::expect_error(Fault::input, "the runs share no probe but that after 0 tokens",
                     [&] { run_analysis(job_of({folder / "data"}, folder / "out")); });
}

TEST(LossesText, SaysOnlyWhatIsTrue) {
  EXPECT_EQ(losses_text(losses_of(0.784, 0.788, 0.821), 3.223, 0.587),
            "the validation losses lie between the language's true entropy, 0.587 nats, and the unigram entropy of the "
            "text, 3.223 nats");
  EXPECT_EQ(
      losses_text(losses_of(4.1, 4.2, 4.3), 3.223, 0.587),
      "the validation losses are above the unigram entropy of the text, 3.223 nats; for comparison: the language's "
      "true entropy, 0.587 nats");
  const std::string neutral =
      "for comparison: the language's true entropy, 0.587 nats, and the unigram entropy of the text, 3.223 nats";
  EXPECT_EQ(losses_text(losses_of(0.784, 3.3, 0.821), 3.223, 0.587), neutral);     // on both sides
  EXPECT_EQ(losses_text(losses_of(0.5, 0.6, 0.7), 3.223, 0.587), neutral);         // a lucky sample
  EXPECT_EQ(losses_text(losses_of(0.784, 3.2226, 0.821), 3.223, 0.587), neutral);  // reads 3.223
  EXPECT_EQ(losses_text(losses_of(NAN, NAN, NAN), 3.223, 0.587), neutral);
  EXPECT_EQ(losses_text(losses_of(2, 2.1, NAN), 3.223, std::nullopt),
            "the validation losses are below the unigram entropy of the text, 3.223 nats");
}

void expect_figures(const fs::path& run) {
  for (const std::string& name : figure_names)
    for (const char* ending : {".png", ".svg", ".gp"})
      EXPECT_GT(fs::file_size(run / (name + ending)), 500u) << name << ending;
}

TEST(Analyze, ThePublishedStudyHasItsPublishedNumbers) {
  const auto published = test::shared_folder() / "reference" / "qk_norm_50m_study";
  HEADSCOPE_NEEDS_SHARED(published);
  const TemporaryFolder folder;
  const AnalyzeOutcome outcome = run_analysis(job_of({published}, folder / "run"));
  EXPECT_NEAR(outcome.result.verdict.mean_pr(0).mean, 65.70, 0.005);
  EXPECT_NEAR(outcome.result.verdict.mean_pr(1).mean, 59.55, 0.005);
  EXPECT_NEAR(outcome.result.verdict.mean_pr(2).mean, 63.25, 0.005);
  EXPECT_NEAR(outcome.result.verdict.find("gamma")->difference(), 6.15, 0.005);
  EXPECT_NEAR(outcome.result.verdict.find("norm")->difference(), -3.70, 0.005);
  EXPECT_EQ(outcome.result.verdict.conclusion, Conclusion::both);
  EXPECT_EQ(outcome.result.verdict.kill_criterion, false);
  EXPECT_TRUE(outcome.result.verdict.descriptive);
  EXPECT_EQ(outcome.result.tokens, 49152000);
  EXPECT_EQ(outcome.result.over_time.size(), 26u);
  EXPECT_FALSE(outcome.result.over_time.back().updates);  // not in the file
  expect_figures(folder / "run");
}

TEST(Analyze, AStudyInMemoryNeedsNoFiles) {
  ConditionResults without_pr = synthetic::results({.tag = "NoQK", .final_pr = 63, .probes = 9});
  without_pr.mean_pr[4] = std::nan("");
  Study study;
  study.seeds.push_back({"seed_1", {{"QK", synthetic::results({.tag = "QK", .final_pr = 66})}, {"NoQK", without_pr}}});
  const StudyResult result = analyze(study, default_tau);
  EXPECT_EQ(result.tokens, 4 * 983040);
  EXPECT_EQ(result.verdict.mean_pr(0).mean, 66);
  EXPECT_EQ(result.verdict.conclusion, Conclusion::inconclusive);
  EXPECT_EQ(result.val_loss[0].mean, study.seeds[0].find("QK")->val_loss[4]);
  EXPECT_EQ(result.val_loss[1].n, 0u);
  EXPECT_EQ(
      result.warnings,
      (std::vector<std::string>{
          "seed_1: condition B (QK_frozen) is missing", "seed_1: NoQK diverged after 7.9 M tokens and is left out",
          "runs end at different numbers of tokens; compared after 3.9 M tokens, the last probe that all have"}));
}

TEST(Analyze, ARunFolderKnowsTheFoldersOfAllConditions) {
  ASSERT_EQ(known_conditions().size(), condition_tags.size());
  for (const Condition& condition : known_conditions())
    for (const std::string place : {"", "seed_42/"})
      EXPECT_TRUE(RunNames().is_ours(place + condition.tag + "/" + results_name, /*is_folder=*/false));
}

TEST(Analyze, WritesACompleteRunFolder) {
  const TemporaryFolder folder;
  synthetic::write_seed(folder / "data", 66, 60, 63);
  const AnalyzeOutcome outcome = run_analysis(job_of({folder / "data"}, folder / "run"));
  EXPECT_EQ(outcome.out, folder / "run");
  expect_figures(folder / "run");
  const ordered_json manifest = read_manifest(folder / "run");
  EXPECT_EQ(manifest.at("status"), "complete");
  EXPECT_EQ(manifest.at("command"), "study");
  EXPECT_EQ(manifest.at("config").at("tau"), 1.0);
  EXPECT_EQ(manifest.at("inputs_xxh3_128").size(), 3u);
  const ordered_json combined = json_of(folder / "run/combined.json");
  EXPECT_EQ(combined.at("A"), json_of(folder / "data/QK/results.json"));
  EXPECT_EQ(combined.at("B"), json_of(folder / "data/QK_frozen/results.json"));
  EXPECT_EQ(combined.at("C"), json_of(folder / "data/NoQK/results.json"));
  EXPECT_GE(combined.at("elapsed_s").get<double>(), 0);
  EXPECT_EQ(combined.at("verdict").at("gamma_effect"), 6.0);
  EXPECT_EQ(combined.at("verdict").at("norm_effect"), -3.0);
  EXPECT_EQ(combined.at("verdict").at("conclusion"), "both");
  EXPECT_EQ(combined.at("verdict").at("tokens"), 4 * 983040);
  EXPECT_EQ(read_file(folder / "run/QK/results.json"), read_file(folder / "data/QK/results.json"));
}

TEST(Analyze, SeveralSeedsAreListedAndTested) {
  const TemporaryFolder folder;
  synthetic::write_seed(folder / "data/seed_1", 66, 60, 63);
  synthetic::write_seed(folder / "data/seed_2", 66.5, 60.2, 63.1);
  const AnalyzeOutcome outcome = run_analysis(job_of({folder / "data"}, folder / "run"));
  EXPECT_FALSE(outcome.result.verdict.descriptive);
  const ordered_json combined = json_of(folder / "run/combined.json");
  EXPECT_FALSE(combined.contains("A"));
  ASSERT_EQ(combined.at("seeds").size(), 2u);
  EXPECT_EQ(combined.at("seeds")[1].at("seed"), "seed_2");
  EXPECT_EQ(combined.at("seeds")[1].at("B"), json_of(folder / "data/seed_2/QK_frozen/results.json"));
  EXPECT_EQ(combined.at("verdict").at("seeds").at("A").at("n"), 2);
  EXPECT_TRUE(fs::exists(folder / "run/seed_1/NoQK/results.json"));
  expect_figures(folder / "run");
}

// PR falls linearly from 90 at the first of five probes, so differences grow linearly.
TEST(Analyze, TheVerdictIsGivenAtEveryProbeAndInOtherReadings) {
  Study study;
  study.seeds.push_back({"one",
                         {{"QK", synthetic::results({"QK", 66})},
                          {"QK_frozen", synthetic::results({"QK_frozen", 60})},
                          {"NoQK", synthetic::results({"NoQK", 62})}}});
  study.seeds[0].runs["QK"].val_loss.back() -= 0.1;  // A is ahead
  const StudyResult result = analyze(study, default_tau);
  std::vector<std::string_view> conclusions;
  for (const Reading& reading : result.over_time) conclusions.push_back(conclusion_name(reading.verdict.conclusion));
  // A - B, B - C: 0, 0; 1.5, -0.5; 3, -1; 4.5, -1.5; 6, -2. A - C: 0, 1, 2, 3, 4.
  EXPECT_EQ(conclusions, (std::vector<std::string_view>{"none", "gamma", "both", "both", "both"}));
  EXPECT_EQ(result.held_since, 2 * 983040);
  ASSERT_TRUE(result.last_probes.has_value());
  EXPECT_NEAR(result.last_probes->find("gamma")->difference(), 3, 1e-12);
  // B and C end at the loss 4.1. A passes it between 4.35 (PR 72) and 4.0 (PR 66): 66 + 6 * 0.1/0.35.
  EXPECT_NEAR(result.details[0].at_equal_loss.mean, 66 + 6 * 0.1 / 0.35 - 60, 1e-9);
  EXPECT_NEAR(result.details[1].at_equal_loss.mean, -2, 1e-9);
  EXPECT_NEAR(result.details[0].mean_size(), 6, 1e-12);
  EXPECT_TRUE(std::isnan(result.details[0].noise_size()));
  const ordered_json json = ordered_json::parse(verdict_json(result).dump());
  EXPECT_EQ(json.at("over_time")[1].at("conclusion"), "gamma");
  EXPECT_EQ(json.at("over_time")[1].at("tokens"), 983040);
  EXPECT_EQ(json.at("collapse").at("QK"), 24.0);
  EXPECT_EQ(json.at("diverged"), ordered_json::array());
  EXPECT_EQ(json.at("effects").at("gamma").at("by_layer").at("difference"), (Numbers{6, 6, 6}));
  EXPECT_FALSE(json.at("effects").at("gamma").at("by_layer").contains("noise_abs"));
}

TEST(Analyze, UpdatesAndLearningRateAreAxesWhereAllRunsHaveThem) {
  Study study;
  for (const char* tag : {"QK", "QK_frozen"}) {
    ConditionResults run = synthetic::results({.tag = tag, .probes = 2});
    run.updates = {0, 60};
    run.adamw_lr = 0.005;
    study.seeds.resize(1);
    study.seeds[0].runs[tag] = run;
  }
  EXPECT_EQ(verdict_json(analyze(study, 1)).at("over_time")[1].at("updates_x_adamw_lr"), 0.3);
  study.seeds[0].runs["QK"].updates->back() = 61;
  EXPECT_FALSE(verdict_json(analyze(study, 1)).at("over_time")[1].contains("updates"));
}

// Layers differ by 5 and 7, 5 and 5, ...: standard errors 1 and 0.
TEST(Analyze, LayersHaveErrorsAndTheSizeOfNoise) {
  Study study;
  for (int seed = 0; seed < 2; ++seed) {
    SeedRuns runs{fmt::format("seed_{}", seed), {}};
    runs.runs["QK"] = synthetic::results({.tag = "QK", .final_pr = 65, .layers = 2});
    runs.runs["QK_frozen"] = synthetic::results({.tag = "QK_frozen", .final_pr = 60, .layers = 2});
    runs.runs["QK"].layer_pr[0].back() += 2 * seed;
    study.seeds.push_back(std::move(runs));
  }
  const EffectDetails details = analyze(study, 1).details.at(0);
  EXPECT_NEAR(details.layers[0].mean, 6, 1e-12);
  EXPECT_NEAR(details.layers[0].standard_error, 1, 1e-12);
  EXPECT_NEAR(details.layers[1].mean, 5, 1e-12);
  EXPECT_NEAR(details.mean_size(), 5.5, 1e-12);
  EXPECT_NEAR(details.noise_size(), std::sqrt(2 / M_PI) * 0.5, 1e-12);
}

TEST(Analyze, FurtherConditionsAreUnderTheirTags) {
  const TemporaryFolder folder;
  synthetic::write_seed(folder / "data", 66, 60, 63);
  synthetic::write(synthetic::results({"QK_nodecay", 64}), folder / "data");
  synthetic::write(synthetic::results({"mine", 61}), folder / "data");
  run_analysis(job_of({folder / "data"}, folder / "run"));
  const ordered_json combined = json_of(folder / "run/combined.json");
  EXPECT_EQ(combined.at("conditions").at("mine"), json_of(folder / "data/mine/results.json"));
  EXPECT_EQ(combined.at("verdict").at("effects").at("gamma_learning").at("difference"), 4.0);
  EXPECT_EQ(combined.at("verdict").at("effects").at("gamma_decay").at("difference"), 2.0);
  EXPECT_EQ(combined.at("verdict").at("effects").at("mine").at("difference"), -5.0);
  AnalyzeJob again = job_of({folder / "data"}, folder / "run");
  again.folder.overwrite = true;
  run_analysis(again);  // the folder of one's own condition is known as ours
  EXPECT_TRUE(fs::exists(folder / "run/mine/results.json"));
}

TEST(Analyze, AnyTagThatIsLegalIsDrawn) {
  const TemporaryFolder folder;
  for (const char* seed : {"seed_1", "seed_2"}) {
    synthetic::write_seed(folder / "data" / seed, 66, 60, 63);
    for (const char* tag : {"warm-gain", "-", "QK-frozen", "layer", "A_low", "verdict", "elapsed_s", "conditions"})
      synthetic::write(synthetic::results({tag, 61}), folder / "data" / seed);
  }
  run_analysis(job_of({folder / "data"}, folder / "run"));
  expect_figures(folder / "run");
  const ordered_json combined = json_of(folder / "run/combined.json");
  EXPECT_TRUE(combined.at("verdict").at("effects").contains("warm-gain"));
  EXPECT_TRUE(combined.at("elapsed_s").is_number());
  EXPECT_EQ(combined.at("seeds")[0].at("conditions").at("verdict").at("tag"), "verdict");
}

TEST(Analyze, ATagThatResultsUseForAKeyIsRefused) {
  for (const char* tag : {"A", "B", "C", "S", "gamma", "norm", "total", "norm_matched"}) {
    const TemporaryFolder folder;
    synthetic::write_seed(folder / "data", 66, 60, 63);
    synthetic::write(synthetic::results({tag, 61}), folder / "data");
    expect_error(Fault::input, fmt::format("data/{0}: {0} is the name of an effect or the letter of a condition", tag),
                 [&] { run_analysis(job_of({folder / "data"}, folder / "run")); });
    EXPECT_FALSE(fs::exists(folder / "run"));
  }
}

// PR starts at 90; the other measure at 45, so its tau is half as large.
TEST(Analyze, SaysWhetherTheConclusionHoldsUnderOtherMeasures) {
  Study study{.title = "t", .seeds = {{"seed_1", {}}}, .inputs = {}};
  const auto add = [&](const char* tag, double pr, double same, double other) {
    ConditionResults run = synthetic::results({tag, pr});
    for (const auto& [name, end] : {std::pair("qk_pr", same), std::pair("k_pr_rotated", other)}) {
      Numbers series = run.mean_pr;
      series.front() = 45;
      series.back() = end;
      run.measures[name] = {series, {series, series, series}};
    }
    study.seeds.front().runs[tag] = run;
  };
  add("QK", 65, 30.0, 30.0);
  add("QK_frozen", 60, 29.4, 30.4);  // 0.6 is above half of tau, 0.4 below
  add("NoQK", 60.5, 29.3, 30.3);
  const StudyResult result = analyze(study, 1.0);
  EXPECT_EQ(conclusion_name(result.verdict.conclusion), "gamma");
  ASSERT_EQ(result.measures.size(), 2U);
  const MeasureVerdict &rotated = result.measures[0], &product = result.measures[1];
  EXPECT_EQ(product.name, "qk_pr");
  EXPECT_DOUBLE_EQ(product.verdict.tau, 0.5);
  EXPECT_EQ(product.holds, true);
  EXPECT_EQ(rotated.name, "k_pr_rotated");
  EXPECT_EQ(conclusion_name(rotated.verdict.conclusion), "none");
  EXPECT_EQ(rotated.holds, false);
  const auto json = verdict_json(result)["measures"];
  EXPECT_EQ(json["k_pr_rotated"]["conclusion"], "none");
  EXPECT_EQ(json["k_pr_rotated"]["holds"], false);
  EXPECT_NEAR(json["qk_pr"]["effects"]["gamma"]["difference"].get<double>(), 0.6, 1e-12);
  EXPECT_NE(verdict_text(result).find("qk_pr               0.50   30.00   29.40   29.30  gamma: holds"),
            std::string::npos)
      << verdict_text(result);
  // Nothing holds under another measure where nothing was shown.
  Study without = study;
  without.seeds.front().runs.erase("NoQK");
  const StudyResult unclear = analyze(without, 1.0);
  EXPECT_EQ(conclusion_name(unclear.verdict.conclusion), "inconclusive");
  ASSERT_EQ(unclear.measures.size(), 2U);
  EXPECT_EQ(unclear.measures[1].holds, std::nullopt);
  EXPECT_TRUE(verdict_json(unclear)["measures"]["qk_pr"]["holds"].is_null());
  EXPECT_EQ(verdict_text(unclear).find("holds"), std::string::npos) << verdict_text(unclear);
  EXPECT_EQ(verdict_text(unclear).find("differs"), std::string::npos);
  // A measure that one run lacks is no measure of the study.
  study.seeds.front().runs["NoQK"].measures.erase("qk_pr");
  EXPECT_EQ(analyze(study, 1.0).measures.size(), 1U);
  study.seeds.front().runs["NoQK"].measures.clear();
  EXPECT_FALSE(verdict_json(analyze(study, 1.0)).contains("measures"));
}

TEST(Analyze, ADivergedRunIsListedAndItsPairsAreLeftOut) {
  const TemporaryFolder folder;
  for (int seed = 1; seed <= 3; ++seed)
    synthetic::write_seed(folder / fmt::format("data/seed_{}", seed), 66 + 0.1 * seed, 60, 63);
  ConditionResults diverged = synthetic::results({.tag = "QK_frozen", .final_pr = 60, .probes = 3});
  diverged.mean_pr.back() = diverged.val_loss.back() = std::nan("");
  synthetic::write(diverged, folder / "data/seed_2");
  const AnalyzeOutcome outcome = run_analysis(job_of({folder / "data"}, folder / "run"));
  EXPECT_EQ(outcome.result.tokens, 4 * 983040);
  EXPECT_EQ(outcome.result.verdict.conclusion, Conclusion::both);
  const ordered_json verdict = json_of(folder / "run/combined.json").at("verdict");
  EXPECT_EQ(verdict.at("diverged").dump(), R"([{"seed":"seed_2","tag":"QK_frozen","tokens":983040}])");
  EXPECT_EQ(verdict.at("effects").at("gamma").at("seeds"), 2);
  EXPECT_EQ(verdict.at("effects").at("total").at("seeds"), 3);
  expect_figures(folder / "run");
}

// A last probe may have a PR and lack a loss: it is not sound, either.
TEST(Analyze, ADivergedRunIsListedWithItsLastSoundProbe) {
  for (Numbers ConditionResults::*series :
       {&ConditionResults::mean_pr, &ConditionResults::loss, &ConditionResults::val_loss}) {
    Study study;
    ConditionResults run = synthetic::results({.tag = "QK", .probes = 4});
    (run.*series).back() = std::nan("");
    study.seeds.push_back({"seed_1", {{"QK", run}, {"NoQK", synthetic::results({.tag = "NoQK", .probes = 4})}}});
    const StudyResult result = analyze(study, default_tau);
    ASSERT_EQ(result.diverged.size(), 1u);
    EXPECT_EQ(result.diverged[0].tokens, 2 * 983040);
  }
}

TEST(Analyze, RunsWithTheSameValuesAreNamed) {
  const TemporaryFolder folder;
  synthetic::write_seed(folder / "data/seed_1", 66, 60, 63);
  synthetic::write_seed(folder / "data/seed_2", 66, 60.5, 63);
  const auto warnings = [&] { return analyze(load_study({folder / "data"}), default_tau).warnings; };
  EXPECT_EQ(warnings(),
            (std::vector<std::string>{"runs with the same values: QK of seed_2 and seed_1, NoQK of seed_2 and seed_1; "
                                      "they are not independent, and tests are too sure"}));
  synthetic::write_seed(folder / "data/seed_2", 66.25, 60.5, 63.5);
  EXPECT_EQ(warnings(), std::vector<std::string>{});
}

TEST(Analyze, FoldersOfOtherNamesAreNumbered) {
  const TemporaryFolder folder;
  synthetic::write_seed(folder / "first", 66, 60, 63);
  synthetic::write_seed(folder / "second/seed_42", 66.5, 60.2, 63.1);
  run_analysis(job_of({folder / "first", folder / "second"}, folder / "run"));
  EXPECT_TRUE(fs::exists(folder / "run/seed_1/QK/results.json"));
  EXPECT_TRUE(fs::exists(folder / "run/seed_2/QK/results.json"));
}

TEST(Analyze, ARunCanBeAnalysedAndDrawnAgain) {
  const TemporaryFolder folder;
  synthetic::write_seed(folder / "data", 66, 60, 63);
  run_analysis(job_of({folder / "data"}, folder / "run"));
  const AnalyzeOutcome again = run_analysis(job_of({folder / "run"}, folder / "again"));
  EXPECT_EQ(again.result.verdict.conclusion, Conclusion::both);
  const std::string light = read_file(folder / "run/2_key_pr_causal.svg");
  const auto files = draw_study_run(folder / "run", folder / "run", "dark");
  EXPECT_GE(files.size(), 4 * figure_names.size());
  EXPECT_NE(read_file(folder / "run/2_key_pr_causal.svg"), light);
  draw_study_run(folder / "run", folder / "run", "light");
  EXPECT_EQ(read_file(folder / "run/2_key_pr_causal.svg"), light);  // the title, too, is that of the data
}

TEST(Analyze, ACheckpointThatSomeRunsLackIsNotCompared) {
  const TemporaryFolder folder;
  synthetic::write(synthetic::results({.tag = "QK", .final_pr = 66, .probes = 9}), folder / "data");
  synthetic::write(synthetic::results({.tag = "QK_frozen", .final_pr = 66, .probes = 3}), folder / "data");
  const AnalyzeOutcome outcome = run_analysis(job_of({folder / "data"}, folder / "run"));
  EXPECT_EQ(outcome.result.tokens, 2 * 983040);
  EXPECT_EQ(outcome.result.verdict.mean_pr(0).mean, 84);  // 90 - 24 * 2/8
  EXPECT_EQ(outcome.result.verdict.mean_pr(1).mean, 66);
  EXPECT_TRUE(json_of(folder / "run/combined.json").at("C").is_null());
}

TEST(Analyze, WrongUsageIsRefusedAndWritesNothing) {
  const TemporaryFolder folder;
  synthetic::write_seed(folder / "data", 66, 60, 63);
  const auto refused = [&](const std::string& message, auto change) {
    AnalyzeJob job = job_of({folder / "data"}, folder / "run");
    change(job);
    expect_error(Fault::input, message, [&] { run_analysis(job); });
    EXPECT_FALSE(fs::exists(folder / "run"));
  };
  refused("--analyze DIR is required", [](AnalyzeJob& job) { job.folders.clear(); });
  for (const double tau : {0.0, -1.0, 1e-308, 1e308, std::nan(""), HUGE_VAL})
    refused("--tau", [&](AnalyzeJob& job) { job.tau = tau; });
  refused("unknown theme", [](AnalyzeJob& job) { job.theme = "blue"; });
  refused("nowhere", [&](AnalyzeJob& job) { job.folders = {folder / "nowhere"}; });
}

TEST(Analyze, NeverOverwritesWhatItReads) {
  const TemporaryFolder folder;
  synthetic::write_seed(folder / "data", 66, 60, 63);
  run_analysis(job_of({folder / "data"}, folder / "run"));
  AnalyzeJob job = job_of({folder / "run"}, folder / "run");
  job.folder.overwrite = true;
  expect_error(Fault::input, "which is to be read", [&] { run_analysis(job); });
  for (const char* given : {"run/../run/", "run/QK/.."}) {
    job.folders = {folder / given};
    expect_error(Fault::input, "which is to be read", [&] { run_analysis(job); });
  }
  job.folder.out = folder.path();
  expect_error(Fault::input, "so it is not a run folder", [&] { run_analysis(job); });
  EXPECT_TRUE(fs::exists(folder / "run/QK/results.json"));
}

}  // namespace
}  // namespace headscope
