#include "study/analyze.h"

#include <gtest/gtest.h>

#include <chrono>

#include "core/atomic_file.h"
#include "run/names.h"
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

const std::vector<std::string> figure_names = {"1_loss", "2_key_pr_causal", "3_per_layer", "4_causal_decomposition",
                                               "5_gamma_cv"};

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

PerCondition<MeanInterval> losses_of(double a, double b, double c) {
  return {MeanInterval{.mean = a}, MeanInterval{.mean = b}, MeanInterval{.mean = c}};
}

// Only what the three printed digits show is said.
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
  EXPECT_NEAR(outcome.result.verdict.mean_pr[0].mean, 65.70, 0.005);
  EXPECT_NEAR(outcome.result.verdict.mean_pr[1].mean, 59.55, 0.005);
  EXPECT_NEAR(outcome.result.verdict.mean_pr[2].mean, 63.25, 0.005);
  EXPECT_NEAR(outcome.result.verdict.gamma_effect->test.difference, 6.15, 0.005);
  EXPECT_NEAR(outcome.result.verdict.norm_effect->test.difference, -3.70, 0.005);
  EXPECT_EQ(outcome.result.verdict.conclusion, Conclusion::both);
  EXPECT_EQ(outcome.result.verdict.kill_criterion, false);
  EXPECT_EQ(outcome.result.tokens, 49152000);
  expect_figures(folder / "run");
}

TEST(Analyze, AStudyInMemoryNeedsNoFiles) {
  ConditionResults without_pr = synthetic::results({.tag = "NoQK", .final_pr = 63, .probes = 9});
  without_pr.mean_pr[4] = std::nan("");
  Study study;
  study.seeds.push_back({"seed_1", {synthetic::results({.tag = "QK", .final_pr = 66}), std::nullopt, without_pr}});
  const StudyResult result = analyze(study, default_tau);
  EXPECT_EQ(result.tokens, 4 * 983040);
  EXPECT_EQ(result.verdict.mean_pr[0].mean, 66);
  EXPECT_EQ(result.verdict.conclusion, Conclusion::inconclusive);
  EXPECT_EQ(result.val_loss[0].mean, study.seeds[0].conditions[0]->val_loss[4]);
  EXPECT_EQ(result.val_loss[1].n, 0u);
  EXPECT_EQ(
      result.warnings,
      (std::vector<std::string>{
          "seed_1: condition B (QK_frozen) is missing", "seed_1: NoQK has no mean PR at the last probe and is left out",
          "runs end at different numbers of tokens; compared after 3.9 M tokens, the last probe that all have"}));
}

TEST(Analyze, ARunFolderKnowsTheFoldersOfAllConditions) {
  for (const Condition& condition : study_conditions)
    for (const std::string place : {"", "seed_42/"})
      EXPECT_TRUE(RunNames().is_ours(place + std::string(condition.tag) + "/" + results_name, /*is_folder=*/false));
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
  EXPECT_TRUE(outcome.result.verdict.gamma_effect->tested);
  const ordered_json combined = json_of(folder / "run/combined.json");
  EXPECT_FALSE(combined.contains("A"));
  ASSERT_EQ(combined.at("seeds").size(), 2u);
  EXPECT_EQ(combined.at("seeds")[1].at("seed"), "seed_2");
  EXPECT_EQ(combined.at("seeds")[1].at("B"), json_of(folder / "data/seed_2/QK_frozen/results.json"));
  EXPECT_EQ(combined.at("verdict").at("seeds").at("A").at("n"), 2);
  EXPECT_TRUE(fs::exists(folder / "run/seed_1/NoQK/results.json"));
  expect_figures(folder / "run");
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
  EXPECT_EQ(outcome.result.verdict.mean_pr[0].mean, 84);  // 90 - 24 * 2/8
  EXPECT_EQ(outcome.result.verdict.mean_pr[1].mean, 66);
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
  for (const double tau : {0.0, -1.0, std::nan(""), HUGE_VAL})
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
