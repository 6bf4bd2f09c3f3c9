#include "experiments/surgery/run.h"

#include "core/atomic_file.h"
#include "formats/parquet_table.h"
#include "model/load.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "train/small_run.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::small_job;
using test::TemporaryFolder;

// A run of twelve steps, whose checkpoint holds what an own command would write.
void train_small(const fs::path& folder, bool qk_norm = true, QkGainShape gain = QkGainShape::vector) {
  TrainJob job = small_job(folder);
  job.model.qk_norm = qk_norm;
  job.model.qk_gain = gain;
  Setup setup;
  setup.model = job.model;
  setup.train = job.options;
  job.config = to_json(setup);
  Console quiet({.quiet = true});
  train(job, load_corpus_for(setup, quiet), choose_device("cpu"));
}

class Surgery : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    trained = new TemporaryFolder;
    train_small(*trained / "learned");
    train_small(*trained / "none", false);
    train_small(*trained / "scalar", true, QkGainShape::scalar);
  }
  static void TearDownTestSuite() { delete trained; }

  SurgeryJob job_of(const char* run) {
    SurgeryJob job;
    job.options.checkpoint = (*trained / run).string();
    job.options.device = "cpu";
    job.options.shares = "0,0.25,0.5,1";
    job.options.repeats = 2;
    job.options.bits = "8,2";
    job.folder.out = folder / "out";
    return job;
  }
  SurgeryOutcome run(const SurgeryJob& job) {
    Console quiet({.quiet = true});
    return run_surgery(job, quiet);
  }
  void refused(const std::string& part, const SurgeryJob& job) {
    expect_error(Fault::input, part, [&] { run(job); });
    EXPECT_FALSE(fs::exists(folder / "out")) << part;
  }

  static TemporaryFolder* trained;
  TemporaryFolder folder;
};
TemporaryFolder* Surgery::trained = nullptr;

TEST_F(Surgery, TheUnmodifiedLossIsThatOfTheLastProbe) {
  const Table probes = read_parquet(*trained / "learned" / "probes.parquet");
  EXPECT_EQ(run(job_of("learned")).losses.unmodified, probes.numbers("val_loss").back());
}

TEST_F(Surgery, WritesOneRowForEachOperation) {
  const SurgeryOutcome outcome = run(job_of("learned"));
  const Table rows = read_parquet(folder / "out" / "surgery.parquet");
  ASSERT_EQ(rows.rows(), 4U + 4 + 2 * 4 + 2 + 2);
  const Numbers share = rows.numbers("share_removed"), loss = rows.numbers("loss"),
                change = rows.numbers("loss_change");
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    const bool remove = rows.texts("method")[row] == "remove";
    EXPECT_EQ(std::isnan(share[row]), !remove);
    EXPECT_EQ(rows.integers("bits")[row] == 0, remove);
    EXPECT_DOUBLE_EQ(change[row], loss[row] - outcome.losses.unmodified);
    if (!remove) continue;
    EXPECT_EQ(static_cast<double>(rows.integers("dimensions")[row]), share[row] * 8);
    EXPECT_EQ(rows.texts("order")[row], rows.texts("by")[row] == "random" ? "random" : "smallest");
    EXPECT_EQ(change[row] == 0, share[row] == 0);
    EXPECT_EQ(loss[row] == outcome.losses.uniform, share[row] == 1);
  }
  EXPECT_NE(outcome.losses.uniform, outcome.losses.unmodified);
  EXPECT_EQ(read_csv(folder / "out" / "surgery.csv").numbers("loss"), loss);
  for (const char* name : {"surgery_removal.png", "surgery_removal.svg", "surgery_quantisation.png"})
    EXPECT_TRUE(fs::exists(folder / "out" / "plots" / name)) << name;
  const auto manifest = read_manifest(folder / "out");
  EXPECT_EQ(manifest["status"], "complete");
  EXPECT_EQ(manifest["inputs_xxh3_128"].size(), 2U);
  const auto summary = nlohmann::json::parse(read_file(folder / "out" / "summary.json"));
  EXPECT_EQ(summary["unmodified_loss"], outcome.losses.unmodified);
  EXPECT_EQ(summary["remove"]["random"][0]["loss_change"], 0);
  EXPECT_EQ(summary["quantise"]["tensor"].size(), 2U);
}

TEST_F(Surgery, IsTheSameAgainFromItsOwnConfiguration) {
  run(job_of("learned"));
  SurgeryJob again;
  for (const ConfigEntry& entry : read_yaml(folder / "out" / "config.yaml")) apply(again.options, entry);
  again.folder.out = folder / "again";
  run(again);
  EXPECT_EQ(read_file(folder / "out" / "surgery.csv"), read_file(folder / "again" / "surgery.csv"));
}

TEST_F(Surgery, ChangesTheChosenLayersOnly) {
  SurgeryJob job = job_of("learned");
  job.options.layers = "1";
  const SurgeryLosses one = run(job).losses;
  job.options.layers = "0-1";
  job.folder.overwrite = true;
  const SurgeryLosses both = run(job).losses;
  EXPECT_EQ(one.unmodified, both.unmodified);
  EXPECT_NE(one.uniform, both.uniform);
}

TEST_F(Surgery, OtherDataGivesAnotherLoss) {
  std::string text;
  for (int i = 0; i < 600; ++i) text += fmt::format("document {} of some words\n<|endoftext|>\n", i * i);
  write_file(folder / "text.txt", text);
  SurgeryJob job = job_of("learned");
  job.options.data = (folder / "text.txt").string();
  job.options.by = "tensor";
  const double own = run(job).losses.unmodified;
  job.options.data.clear();
  job.folder.overwrite = true;
  EXPECT_NE(own, run(job).losses.unmodified);
}

TEST_F(Surgery, WithoutGainsTheyOrderNothing) {
  SurgeryJob job = job_of("none");
  const SurgeryOutcome outcome = run(job);
  for (const std::string& by : outcome.losses.rows.texts("by")) EXPECT_NE(by, "gain");
  job.options.by = "gain,random";
  job.folder.out = folder / "other";
  expect_error(Fault::input, "has no learned key gains (model.qk_norm is false)", [&] { run(job); });
  EXPECT_FALSE(fs::exists(folder / "other"));
}

TEST_F(Surgery, OneGainForAllDimensionsOrdersNothing) {
  SurgeryJob job = job_of("scalar");
  const SurgeryOutcome outcome = run(job);
  for (const std::string& by : outcome.losses.rows.texts("by")) EXPECT_NE(by, "gain");
  job.options.by = "gain";
  job.folder.out = folder / "other";
  expect_error(Fault::input, "has one key gain for all dimensions of a layer (model.qk_gain is scalar)",
               [&] { run(job); });
}

TEST_F(Surgery, BadInputHasItsLineAndLeavesNoFolder) {
  const auto with = [&](auto change) {
    SurgeryJob job = job_of("learned");
    change(job.options);
    return job;
  };
  refused("no checkpoint is named", with([](auto& o) { o.checkpoint = ""; }));
  refused("is no checkpoint", with([&](auto& o) { o.checkpoint = folder.path(); }));
  refused("missing: is not there", with([&](auto& o) { o.checkpoint = folder / "missing"; }));
  refused("--by gains: unknown operation 'gains'; did you mean 'gain'?", with([](auto& o) { o.by = "gains"; }));
  for (const char* shares : {"1.1", "-0.1", "nan", "", "0,,1", "half"})
    refused("expected numbers from 0 to 1", with([&](auto& o) { o.shares = shares; }));
  for (const char* bits : {"1", "17", "8,", "4.5"})
    refused("expected whole numbers from 2 to 16", with([&](auto& o) { o.bits = bits; }));
  refused("the model has no layer 2; expected 0-1", with([](auto& o) { o.layers = "0-2"; }));
  refused("expected numbers and ranges", with([](auto& o) { o.layers = "first"; }));
  refused("repeats is 0; expected 1 to 1000", with([](auto& o) { o.repeats = 0; }));
  refused("missing.txt", with([&](auto& o) { o.data = folder / "missing.txt"; }));
  refused("unknown device 'tpu'", with([](auto& o) { o.device = "tpu"; }));
  SurgeryJob themed = job_of("learned");
  themed.theme = "blue";
  refused("unknown theme", themed);
}

TEST_F(Surgery, ADamagedCheckpointIsRefused) {
  fs::copy(*trained / "learned", folder / "copy", fs::copy_options::recursive);
  const fs::path file = folder / "copy" / "checkpoints" / "step-000012" / "model.safetensors";
  std::string bytes = read_file(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  write_file(file, bytes);
  SurgeryJob job = job_of("learned");
  job.options.checkpoint = (folder / "copy").string();
  refused("model.safetensors: its content does not match the hash", job);
}

TEST_F(Surgery, FiguresCanBeDrawnAgain) {
  run(job_of("learned"));
  fs::remove_all(folder / "out" / "plots");
  EXPECT_EQ(draw_surgery_run(folder / "out", folder / "out", "dark").size(), 2U * 3 + 3 + 2);
  write_file(folder / "out" / "summary.json", "{}");
  expect_error(Fault::input, "summary.json: is damaged",
               [&] { draw_surgery_run(folder / "out", folder / "out", "light"); });
}

TEST_F(Surgery, ACompleteRunIsShownAgain) {
  const SurgeryLosses first = run(job_of("learned")).losses;
  SurgeryJob job = job_of("learned");
  expect_error(Fault::input, "exists and is complete; ", [&] { run(job); });
  job.folder.resume = true;
  EXPECT_EQ(run(job).losses.rows.numbers("loss"), first.rows.numbers("loss"));
}

}  // namespace
}  // namespace headscope
