// Workers share keys, the journal, the console and the drawing of figures. These tests also run under ThreadSanitizer.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <random>

#include "core/atomic_file.h"
#include "formats/capture_writer.h"
#include "plasticity/run.h"
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
  EXPECT_EQ(one.outcome.heads.size(), layers * query_heads - 1U);
  ASSERT_EQ(four.outcome.failures.size(), 1U);
  EXPECT_EQ(four.outcome.failures[0].id.name(), "l01h02");
  EXPECT_FALSE(one.tables.empty());
  EXPECT_EQ(one.tables, four.tables);
  EXPECT_TRUE(fs::exists(four.outcome.out / "plots"));
}

}  // namespace
}  // namespace headscope
