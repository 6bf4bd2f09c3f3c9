// Tables of a run with rows that make no sense: they are refused by row, and ask for no memory.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "core/atomic_file.h"
#include "formats/parquet_table.h"
#include "heads/tracks.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::TemporaryFolder;

struct Row {
  std::int64_t step = 0, tokens = 0;
  std::string source = "probe";
  std::int64_t layer = 0;
  std::string kind = "k";
  std::int64_t head = 0;
  std::string metric = "k_norm";
  double value = 1;
};
using Rows = std::vector<Row>;

// Two moments of two layers with two key heads and four query heads: 24 rows, those of a moment one after another.
Rows whole_table() {
  Rows rows;
  for (std::int64_t step = 0; step < 2; ++step)
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      for (std::int64_t head = 0; head < 2; ++head) rows.push_back({step, 64 * step, "probe", layer, "k", head});
      for (std::int64_t head = 0; head < 4; ++head)
        rows.push_back({step, 64 * step, "probe", layer, "q", head, "entropy", 2});
    }
  return rows;
}

void write_heads(const fs::path& file, const Rows& rows) {
  Integers step, tokens, layer, head;
  Texts source, kind, metric;
  Numbers value;
  for (const Row& row : rows) {
    step.push_back(row.step);
    tokens.push_back(row.tokens);
    source.push_back(row.source);
    layer.push_back(row.layer);
    kind.push_back(row.kind);
    head.push_back(row.head);
    metric.push_back(row.metric);
    value.push_back(row.value);
  }
  Table table;
  table.add("step", step).add("tokens", tokens).add("source", source).add("layer", layer).add("kind", kind);
  table.add("head", head).add("metric", metric).add("value", value);
  write_file(file, to_parquet(table));
}

// In two parts, so that a row of the second is counted on.
RunTracks read_with(const std::function<void(Rows&)>& damage) {
  const TemporaryFolder run;
  Rows rows = whole_table();
  damage(rows);
  fs::create_directory(run / "heads.parquet");
  const auto half = rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2);
  write_heads(run / "heads.parquet" / "part-00000.parquet", {rows.begin(), half});
  write_heads(run / "heads.parquet" / "part-00001.parquet", {half, rows.end()});
  return read_tracks(run.path());
}

void expect_refused(const std::string& line, const std::function<void(Row&)>& damage) {
  for (const std::size_t row : {std::size_t{7}, std::size_t{23}})
    expect_error(Fault::input, fmt::format("heads.parquet: row {}: {}; the table is damaged", row, line),
                 [&] { read_with([&](Rows& rows) { damage(rows[row]); }); });
}

TEST(DamagedHeads, AWholeTableIsRead) {
  const RunTracks tracks = read_with([](Rows&) {});
  EXPECT_EQ(tracks.probe.moments.size(), 2U);
  EXPECT_EQ(tracks.probe.counts.layers, 2);
  EXPECT_EQ(tracks.probe.counts.key_heads, 2);
  EXPECT_EQ(tracks.probe.counts.query_heads, 4);
}

TEST(DamagedHeads, LayersAndHeadsThatTheRowsCannotFill) {
  for (const std::int64_t layer : {16384, 65535})
    for (const std::int64_t head : {std::int64_t{0}, std::int64_t{65535}}) {
      const std::string line = fmt::format("layer {}, head {}: out of range, ", layer, head);
      expect_error(Fault::input, line,
                   [&] { read_with([&](Rows& rows) { rows[23].layer = layer, rows[23].head = head; }); });
    }
  expect_error(Fault::input, "row 8: layer 1, head 65535: out of range, 16 rows cannot be all of entropy",
               [] { read_with([](Rows& rows) { rows[8].head = 65535; }); });
  for (const std::int64_t number : {std::int64_t{-1}, std::int64_t{65536}, std::numeric_limits<std::int64_t>::max()}) {
    expect_refused(fmt::format("layer {}, head 0: out of range", number),
                   [&](Row& row) { row.layer = number, row.head = 0; });
    expect_refused(fmt::format("layer 0, head {}: out of range", number),
                   [&](Row& row) { row.layer = 0, row.head = number; });
  }
}

TEST(DamagedHeads, AFewLayersWithoutRowsAreAbsent) {
  const RunTracks tracks = read_with([](Rows& rows) { rows[23].layer = 5; });
  EXPECT_EQ(tracks.probe.counts.layers, 6);
  EXPECT_TRUE(std::isnan(tracks.probe.of_head("entropy", 4, 3)[1]));
  EXPECT_EQ(tracks.probe.of_head("entropy", 5, 3)[1], 2);
}

TEST(DamagedHeads, StepsAndTokensOutOfRange) {
  constexpr std::int64_t large = (std::int64_t{1} << 53) + 1;
  expect_refused("step -1, tokens 0: expected 0 to 2^53", [](Row& row) { row.step = -1, row.tokens = 0; });
  expect_refused(fmt::format("step {}, tokens 0: expected 0 to 2^53", large),
                 [](Row& row) { row.step = large, row.tokens = 0; });
  expect_refused("step 0, tokens -5: expected 0 to 2^53", [](Row& row) { row.step = 0, row.tokens = -5; });
  expect_refused(fmt::format("step 0, tokens {}: expected 0 to 2^53", large),
                 [](Row& row) { row.step = 0, row.tokens = large; });
}

TEST(DamagedHeads, TwoNumbersOfTokensForOneStep) {
  expect_error(Fault::input, "row 23: step 1 has 65 tokens, in a row before 64; the table is damaged",
               [] { read_with([](Rows& rows) { rows[23].tokens = 65; }); });
}

TEST(DamagedHeads, AKindThatTheMetricIsNotMeasuredOf) {
  expect_refused("entropy of a head of kind 'k', expected 'q'",
                 [](Row& row) { row.kind = "k", row.metric = "entropy"; });
  expect_refused("k_norm of a head of kind 'zebrazebrazebraz', expected 'k'",
                 [](Row& row) { row.kind = "zebrazebrazebrazebra", row.metric = "k_norm"; });
}

TEST(DamagedHeads, ASecondValue) {
  expect_error(Fault::input, "row 24: a second entropy of step 0, layer 1, head 3; the table is damaged",
               [] { read_with([](Rows& rows) { rows.push_back(rows[11]); }); });
  // Also where the first is missing: NaN is a value.
  expect_error(Fault::input, "row 24: a second entropy of step 0, layer 1, head 3; the table is damaged", [] {
    read_with([](Rows& rows) {
      rows[11].value = std::nan("");
      rows.push_back(rows[11]);
    });
  });
}

// Another version may know more than this one.
TEST(DamagedHeads, UnknownMetricsAndSourcesAreLeftOut) {
  const RunTracks tracks = read_with([](Rows& rows) {
    for (int i = 0; i < 1000; ++i)
      rows.push_back({-7, -7, "probe", 1 << 20, "v", 1 << 20, fmt::format("k_new_{}", i), 3});
    rows.push_back({9, 9, "test", 1 << 20, "v", 1 << 20, "k_norm", 3});
  });
  EXPECT_EQ(tracks.probe.counts.layers, 2);
  EXPECT_EQ(tracks.probe.moments.size(), 2U);
  EXPECT_TRUE(tracks.train.moments.empty());
  EXPECT_FALSE(tracks.probe.has("k_new_0"));
  EXPECT_TRUE(tracks.probe.has("k_norm"));
}

TEST(DamagedHeads, NotANumberIsAValue) {
  const RunTracks tracks = read_with([](Rows& rows) { rows[0].value = std::nan(""); });
  EXPECT_TRUE(std::isnan(tracks.probe.of_head("k_norm", 0, 0)[0]));
  EXPECT_EQ(tracks.probe.of_head("k_norm", 0, 0)[1], 1);
}

struct Gain {
  std::int64_t step = 0, tokens = 0, layer = 0;
  std::string kind = "q";
  std::vector<double> vector = {1, 2, 3};
};
using GainRows = std::vector<Gain>;

// Both kinds of both layers at both moments.
RunTracks read_with_gains(const std::function<void(GainRows&)>& damage) {
  GainRows rows;
  for (std::int64_t step = 0; step < 2; ++step)
    for (std::int64_t layer = 0; layer < 2; ++layer)
      for (const char* of : {"q", "k"}) rows.push_back({step, 64 * step, layer, of});
  damage(rows);
  Integers step, tokens, layer;
  Texts kind;
  Vectors vector;
  for (const Gain& row : rows) {
    step.push_back(row.step);
    tokens.push_back(row.tokens);
    layer.push_back(row.layer);
    kind.push_back(row.kind);
    vector.push_back(row.vector);
  }
  const TemporaryFolder run;
  write_heads(run / "heads.parquet", whole_table());
  Table table;
  table.add("step", step).add("tokens", tokens).add("layer", layer).add("kind", kind).add("vector", vector);
  write_file(run / "gamma.parquet", to_parquet(table));
  return read_tracks(run.path());
}

void expect_gain_refused(const std::string& line, const std::function<void(Gain&)>& damage) {
  expect_error(Fault::input, fmt::format("gamma.parquet: row 6: {}; the table is damaged", line),
               [&] { read_with_gains([&](GainRows& rows) { damage(rows[6]); }); });
}

TEST(DamagedGains, AWholeTableIsReadAndNotANumberIsAValue) {
  const RunTracks tracks = read_with_gains([](GainRows& rows) { rows[7].vector[1] = std::nan(""); });
  ASSERT_EQ(tracks.gains.size(), 4U);
  EXPECT_EQ(tracks.gains[3].moment, (Moment{1, 64}));
  EXPECT_EQ(tracks.gains[3].q, (std::vector<double>{1, 2, 3}));
  EXPECT_TRUE(std::isnan(tracks.gains[3].k[1]));
}

TEST(DamagedGains, RowsThatDoNotFitTheHeads) {
  for (const std::int64_t layer : {std::int64_t{-1}, std::int64_t{2}, std::numeric_limits<std::int64_t>::max()})
    expect_gain_refused(fmt::format("layer {}: out of range, heads.parquet has 2 layers", layer),
                        [&](Gain& row) { row.layer = layer; });
  expect_gain_refused("step 1 has -1 tokens, in heads.parquet 64", [](Gain& row) { row.tokens = -1; });
  expect_gain_refused("kind 'v', expected 'q' or 'k'", [](Gain& row) { row.kind = "v"; });
  expect_gain_refused("second gains of step 1, layer 0, 'q'", [](Gain& row) { row.layer = 0; });
}

TEST(DamagedGains, VectorsOfAnotherLength) {
  expect_gain_refused("2 gains, expected 3", [](Gain& row) { row.vector.pop_back(); });
  expect_gain_refused("0 gains, expected 3", [](Gain& row) { row.vector.clear(); });
  expect_error(Fault::input, "row 0: 0 gains, expected some",
               [] { read_with_gains([](GainRows& rows) { rows[0].vector.clear(); }); });
}

// Gains of moments that heads.parquet does not have are left out: a run may have written them just now.
TEST(DamagedGains, OtherMomentsAreLeftOut) {
  EXPECT_EQ(read_with_gains([](GainRows& rows) { rows.push_back({-9, 1, -1, "v", {}}); }).gains.size(), 4U);
}

}  // namespace
}  // namespace headscope
