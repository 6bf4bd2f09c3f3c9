#include "heads/tracks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "formats/part_table.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::expect_error;
using test::TemporaryFolder;
using ::testing::ElementsAre;

// A value that says where it belongs.
double coded(std::int64_t step, std::int64_t layer, std::int64_t head, bool key) {
  return static_cast<double>(step * 1000 + layer * 100 + head * 10 + (key ? 1 : 0));
}

// Two layers, one key head, two query heads; one part for each step.
void write_heads(const std::filesystem::path& run, std::int64_t steps, const std::string& source) {
  PartTable heads(run / "heads.parquet");
  for (std::int64_t step = 0; step < steps; ++step) {
    Integers steps_column, tokens, layers, heads_column;
    Texts sources, kinds, metrics;
    Numbers values;
    const auto add = [&](std::int64_t layer, const char* kind, std::int64_t head, const char* metric, double value) {
      steps_column.push_back(step);
      tokens.push_back(step * 64);
      sources.push_back(source);
      layers.push_back(layer);
      kinds.emplace_back(kind);
      heads_column.push_back(head);
      metrics.emplace_back(metric);
      values.push_back(value);
    };
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      add(layer, "k", 0, "k_norm", coded(step, layer, 0, true));
      for (std::int64_t head = 0; head < 2; ++head) add(layer, "q", head, "entropy", coded(step, layer, head, false));
    }
    Table table;
    table.add("step", steps_column).add("tokens", tokens).add("source", sources).add("layer", layers);
    table.add("kind", kinds).add("head", heads_column).add("metric", metrics).add("value", values);
    heads.append(table);
  }
}

TEST(Tracks, AreTheTablesByMomentLayerAndHead) {
  const TemporaryFolder folder;
  write_heads(folder.path(), 3, "train");
  const RunTracks run = read_tracks(folder.path());
  EXPECT_TRUE(run.probe.moments.empty());
  const Tracks& tracks = run.finest();
  EXPECT_EQ(tracks.source, "train");
  EXPECT_EQ(tracks.moments.back(), (Moment{2, 128}));
  EXPECT_THAT(std::vector(tracks.at("entropy", 1).begin(), tracks.at("entropy", 1).end()),
              ElementsAre(1000, 1010, 1100, 1110));
  EXPECT_THAT(tracks.of_head("k_norm", 1, 0), ElementsAre(101, 1101, 2101));
  EXPECT_THAT(tracks.of_layer("entropy", 1), ElementsAre(105, 1105, 2105));
  EXPECT_TRUE(tracks.at("sink", 0).empty());
  EXPECT_EQ(tracks.key_head_of(1), 0);
}

TEST(Tracks, KeepFirstAndLastMomentOfALongRun) {
  const TemporaryFolder folder;
  write_heads(folder.path(), 11, "probe");
  const RunTracks run = read_tracks(folder.path(), 3);
  ASSERT_EQ(run.probe.moments.size(), 3U);
  EXPECT_EQ(run.probe.moments[0].step, 0);
  EXPECT_EQ(run.probe.moments[1].step, 5);
  EXPECT_EQ(run.probe.moments[2].step, 10);
  EXPECT_THAT(run.probe.of_head("k_norm", 0, 0), ElementsAre(1, 5001, 10001));
}

TEST(Tracks, RefuseAFolderWithoutTables) {
  const TemporaryFolder folder;
  expect_error(Fault::input, "has no heads.parquet", [&] { read_tracks(folder.path()); });
}

TEST(Metrics, AreChosenByGroupOrName) {
  const MetricSelection chosen("rank,entropy", "--track");
  EXPECT_TRUE(chosen.has("k_pr"));
  EXPECT_TRUE(chosen.has("entropy"));
  EXPECT_FALSE(chosen.has("sink"));
  EXPECT_TRUE(chosen.has(MetricGroup::attention));
  EXPECT_FALSE(chosen.has(MetricGroup::pattern));
  for (const Metric& metric : head_metrics())
    EXPECT_EQ(MetricSelection("all", "--track").has(metric.name),
              metric.group != MetricGroup::other_rank && metric.group != MetricGroup::score);
  EXPECT_TRUE(MetricSelection("all,other_rank", "--track").has("qk_pr"));
}

TEST(Metrics, AreRefusedWithTheNearestName) {
  expect_error(Fault::input, "did you mean 'entropy'?", [] { MetricSelection("entropi", "--track"); });
  expect_error(Fault::input, "did you mean 'k_norm'?", [] { metric_named("k_nrm", "--show"); });
}

TEST(LayerGroups, AreThirds) {
  EXPECT_EQ(layer_group(0, 22), LayerGroup::early);
  EXPECT_EQ(layer_group(7, 22), LayerGroup::early);
  EXPECT_EQ(layer_group(8, 22), LayerGroup::middle);
  EXPECT_EQ(layer_group(15, 22), LayerGroup::final);
  EXPECT_EQ(layer_group(0, 1), LayerGroup::early);
}

}  // namespace
}  // namespace headscope
