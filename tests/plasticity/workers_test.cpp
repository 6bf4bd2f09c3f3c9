// A whole analysis, in memory and in a run folder. Workers share keys, the journal and the console: these tests also
// run under ThreadSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <random>

#include "core/atomic_file.h"
#include "formats/captured_vectors.h"
#include "plasticity/run.h"
#include "plasticity/tables.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

constexpr int layers = 2, query_heads = 4, key_heads = 2;

// Every position of some texts, in logarithmic buckets; random vectors.
CapturedVectors random_capture(unsigned seed) {
  constexpr std::int64_t texts = 5, length = 30;
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  CapturedVectors capture;
  capture.dim = 3;
  for (std::int64_t text = 0; text < texts; ++text)
    for (std::int64_t position = 0; position < length; ++position) {
      capture.example_id.push_back(text);
      capture.position.push_back(position);
      capture.bucket.push_back(position < 3 ? 0 : position < 12 ? 1 : 2);
      for (std::size_t c = 0; c < capture.dim; ++c) capture.vector32.push_back(normal(random));
    }
  capture.rows = capture.position.size();
  return capture;
}

void write_heads(const fs::path& data) {
  unsigned seed = 0;
  for (int layer = 0; layer < layers; ++layer)
    for (const auto& [kind, heads] : {std::pair('q', query_heads), std::pair('k', key_heads)})
      for (int head = 0; head < heads; ++head)
        write_captured_vectors(data / fmt::format("l{:02}h{:02}{}", layer, head, kind) / "data.parquet",
                               random_capture(++seed));
}

struct Finished {
  PlasticityOutcome outcome;
  std::map<std::string, std::string> tables;  // CSV by name
};

Finished run_with(const TemporaryFolder& folder, std::int64_t workers, bool figures) {
  PlasticityJob job;
  job.data = folder / "data";
  job.folder.out = folder / fmt::format("with {} workers", workers);
  job.options.max_workers = workers;
  job.figures = job.per_head_figures = figures;
  std::FILE* const messages = std::tmpfile();
  Finished finished;
  {
    Console console({}, messages);
    finished.outcome = run_plasticity(job, console);
  }
  std::fclose(messages);
  for (const auto& entry : fs::directory_iterator(job.folder.out))
    if (entry.path().extension() == ".csv") finished.tables[entry.path().filename().string()] = read_file(entry.path());
  return finished;
}

TEST(Workers, AnyNumberFindsTheSame) {
  const TemporaryFolder folder;
  write_heads(folder / "data");
  const fs::path damaged = folder / "data" / "l01h02q" / "data.parquet";
  const std::string content = read_file(damaged);
  write_file(damaged, content.substr(0, content.size() / 2));
  const Finished one = run_with(folder, 1, /*figures=*/false), four = run_with(folder, 4, /*figures=*/true);
  EXPECT_EQ(one.outcome.result.heads.size(), layers * query_heads - 1U);
  ASSERT_EQ(four.outcome.result.failures.size(), 1U);
  EXPECT_EQ(four.outcome.result.failures[0].id.name(), "l01h02");
  EXPECT_FALSE(one.tables.empty());
  EXPECT_EQ(one.tables, four.tables);
  EXPECT_TRUE(fs::exists(four.outcome.out / "plots"));
}

TEST(ComputePlasticity, NeedsNoRunFolderAndTakesOverFinishedHeads) {
  const TemporaryFolder folder;
  write_heads(folder / "data");
  const Dataset dataset = open_dataset(folder / "data", {});
  const PlasticityResult whole = compute_plasticity({}, dataset);
  ASSERT_EQ(whole.heads.size(), dataset.heads.size());
  std::atomic<std::size_t> left = 0, finished = 0;
  PlasticityObserver observer;
  observer.started = [&](std::size_t count) { left = count; };
  observer.finished = [&](const HeadResult&) { ++finished; };
  const PlasticityResult rest = compute_plasticity({}, dataset, observer, {whole.heads[5], whole.heads[0]});
  EXPECT_EQ(left, dataset.heads.size() - 2);
  EXPECT_EQ(finished, left);
  ASSERT_EQ(rest.heads.size(), whole.heads.size());
  for (std::size_t i = 0; i < whole.heads.size(); ++i)
    EXPECT_EQ(to_record(rest.heads[i]), to_record(whole.heads[i])) << i;
}

TEST(ComputePlasticity, AnExceptionOfTheObserverEndsItAndIsNoFailureOfAHead) {
  const TemporaryFolder folder;
  write_heads(folder / "data");
  PlasticityObserver observer;
  observer.finished = [](const HeadResult&) { fail_input("enough"); };
  observer.failed = [](const HeadFailure& failure) { ADD_FAILURE() << failure.message; };
  test::expect_error(Fault::input, "enough",
                     [&] { compute_plasticity({}, open_dataset(folder / "data", {}), observer); });
}

TEST(FigureTables, AreThoseThatTheRunFolderHolds) {
  const TemporaryFolder folder;
  write_heads(folder / "data");
  for (const Variant variant : {Variant::seed, Variant::diagonal}) {
    PlasticityOptions options;
    options.variant = variant;
    const PlasticityResult result = compute_plasticity(options, open_dataset(folder / "data", options));
    RunFolder run({folder / json_value(variant).get<std::string>()},
                  {"plasticity", nlohmann::ordered_json::object(), nlohmann::ordered_json::object()});
    write_plasticity(result, run);
    const PlasticityTables tables = figure_tables(result, "run");
    EXPECT_EQ(to_csv(tables.heads), read_file(run.place() / options.output_csv));
    EXPECT_EQ(to_csv(tables.cells), read_file(run.place() / options.bucket_csv));
    EXPECT_EQ(to_csv(tables.components), read_file(run.place() / options.component_csv));
    EXPECT_EQ(to_csv(tables.uncertainty.value()), read_file(run.place() / head_uncertainty_csv));
    EXPECT_EQ(to_csv(tables.checks.value()), read_file(run.place() / head_checks_csv));
  }
}

TEST(FigureTables, HaveNoChecksWithoutTheOption) {
  const TemporaryFolder folder;
  write_heads(folder / "data");
  PlasticityOptions options;
  options.checks = false;
  const PlasticityResult result = compute_plasticity(options, open_dataset(folder / "data", options));
  RunFolder run({folder / "run"}, {"plasticity", nlohmann::ordered_json::object(), nlohmann::ordered_json::object()});
  write_plasticity(result, run);
  EXPECT_FALSE(fs::exists(run.place() / head_checks_csv));
  EXPECT_FALSE(figure_tables(result, "run").checks);
  EXPECT_EQ(result.times.seconds(static_cast<std::size_t>(Stage::checks)), 0);
  options.checks = true;
  const PlasticityResult checked = compute_plasticity(options, open_dataset(folder / "data", options));
  EXPECT_EQ(to_csv(figure_tables(checked, "").uncertainty.value()), read_file(run.place() / head_uncertainty_csv));
}

TEST(FigureTables, IntervalsStayWhereTheValuesCanBe) {
  PlasticityResult result;
  HeadResult& head = result.heads.emplace_back();
  head.uncertainty.overall = {0.95, 0.01, 0.1};
  head.uncertainty.first_20 = {0.05, 0.01, 0.1};
  head.uncertainty.last_20 = {0.5, 0.01, missing};
  head.uncertainty.drop = {-0.9, 0.1, 0.2};
  const Table table = figure_tables(result, "").uncertainty.value();
  EXPECT_EQ(table.numbers("high")[0], 1);
  EXPECT_NEAR(table.numbers("low")[0], 0.95 - 0.1959963984540054, 1e-15);
  EXPECT_EQ(table.numbers("ap_first_20_low")[0], 0);
  EXPECT_NEAR(table.numbers("ap_last_20_high")[0], 0.5195996398454005, 1e-12);
  EXPECT_EQ(table.numbers("ap_drop_low")[0], -1);
  EXPECT_NEAR(table.numbers("ap_drop_high")[0], -0.9 + 2 * 0.1959963984540054, 1e-15);
}

}  // namespace
}  // namespace headscope
