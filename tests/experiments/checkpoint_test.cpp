#include "train/checkpoint.h"

#include "core/atomic_file.h"
#include "formats/content_hash.h"
#include "model/load.h"
#include "support/expect_error.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"
#include "train/small_run.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using test::cpu;
using test::expect_error;
using test::run;
using test::small_corpus;
using test::small_job;
using test::TemporaryFolder;

// What a checkpoint that someone made up may say; its hash is right.
void write_state(const fs::path& checkpoint, const std::function<void(nlohmann::ordered_json&)>& change) {
  const fs::path file = checkpoint / "state.json";
  auto state = nlohmann::ordered_json::parse(read_file(file));
  state.erase("xxh3_128");
  change(state);
  state["xxh3_128"] = content_hash(state.dump());
  write_file(file, state.dump());
}

// Old checkpoints go away, but for one in which the user keeps a file; so stays what only resembles a half-written one.
TEST(Checkpoint, FilesOfTheUserStay) {
  const TemporaryFolder folder;
  TrainJob job = small_job(folder / "run");
  job.options.checkpoint_every = 4;
  job.options.keep_checkpoints = 1;
  const fs::path checkpoints = job.folder / "checkpoints", notes = checkpoints / "step-000004" / "notes",
                 mine = checkpoints / ".partial-mine" / "notes";
  TrainObserver observer;
  observer.before_writing = [&] {
    if (!fs::exists(notes.parent_path())) return;
    write_file(notes, "mine");
    fs::create_directories(mine.parent_path());
    write_file(mine, "mine");
  };
  run(job, observer);
  EXPECT_EQ(read_file(notes), "mine");
  EXPECT_TRUE(fs::exists(checkpoints / "step-000004" / "state.json"));
  EXPECT_FALSE(fs::exists(checkpoints / "step-000008"));
  EXPECT_EQ(latest_checkpoint(checkpoints), checkpoints / "step-000012");
  EXPECT_EQ(read_file(mine), "mine");
}

TEST(Checkpoint, ThatIsMadeUpIsRefused) {
  const TemporaryFolder folder;
  const auto config_of = [](const TrainJob& job) {
    headscope::Setup setup;
    setup.model = job.model;
    setup.train = job.options;
    auto config = to_json(setup);
    return config;
  };
  TrainJob job = small_job(folder / "run");
  job.config = config_of(job);
  run(job);
  const fs::path checkpoint = folder / "run/checkpoints/step-000012";
  const std::string untouched = read_file(checkpoint / "state.json");
  const auto refused = [&](const std::string& message, auto change, bool on_resume) {
    write_state(checkpoint, change);
    expect_error(Fault::input, message, [&] { load_model(checkpoint, cpu().device); });
    if (on_resume) expect_error(Fault::input, message, [&] { run(job); });
    write_file(checkpoint / "state.json", untouched);
  };
  const auto set = [](const char* pointer, const nlohmann::ordered_json& value) {
    return [=](nlohmann::ordered_json& state) { state[nlohmann::ordered_json::json_pointer(pointer)] = value; };
  };
  const auto erase = [](const char* key) { return [=](nlohmann::ordered_json& state) { state.erase(key); }; };
  for (const nlohmann::ordered_json& value : {nlohmann::ordered_json(-1), nlohmann::ordered_json("many"),
                                              nlohmann::ordered_json(4611686018427387904), nlohmann::ordered_json()})
    refused("state.json: 'step' is not a whole number from 0 to 1", set("/step", value), true);
  refused("'step' is missing", erase("step"), true);
  refused("'hashes' is missing", erase("hashes"), true);
  refused("'config' is not an object", set("/config", 3), false);
  refused("model.qk_norm", set("/config/model", nlohmann::ordered_json::array({1})), false);
  refused("train.batch is 4294967296; expected 1 to", set("/config/train/batch", 4294967296), false);
  refused("model.layers is 0", set("/config/model/layers", 0), false);
  // Weights of 4 TB would be asked for before the file is looked at.
  refused("model.safetensors: layers.0.feed_forward.up.weight has shape", set("/config/model/d_ff", 1 << 24), false);
  write_state(checkpoint, set("/data_hash", 3));
  expect_error(Fault::input, "'data_hash' is not a text", [&] { run(job); });
  std::string deep = "[";
  for (int i = 0; i < 200'000; ++i) deep += '[';
  write_file(checkpoint / "state.json", deep);
  expect_error(Fault::input, "state.json: is not valid", [&] { load_model(checkpoint, cpu().device); });
  write_file(checkpoint / "state.json", untouched);
  EXPECT_EQ(load_model(folder / "run", cpu().device).step, 12);
}

// Earlier versions had one key for two choices, and the place in the data beside the step.
TEST(OpenCheckpoint, OfAnEarlierVersionOpens) {
  const TemporaryFolder folder;
  TrainJob job = small_job(folder / "run");
  headscope::Setup setup;
  setup.model = job.model;
  setup.train = job.options;
  job.config = to_json(setup);
  run(job);
  const fs::path checkpoint = folder / "run/checkpoints/step-000012";
  for (const auto& [word, gain] : {std::pair("learned", QkGain::learned), std::pair("frozen", QkGain::fixed)}) {
    write_state(checkpoint, [&](nlohmann::ordered_json& state) {
      state["position"] = 96;
      state["config"]["model"]["qk_norm"] = word;
      state["config"]["train"].erase("qk_gain");
    });
    const LoadedModel opened = load_model(checkpoint, cpu().device);
    EXPECT_TRUE(opened.setup.model.qk_norm);
    EXPECT_EQ(opened.setup.train.qk_gain, gain);
    EXPECT_TRUE(opened.model.layers[0].k_gain.defined());
    EXPECT_FALSE(opened.model.layers[0].k_gain.requires_grad());
  }
  write_state(checkpoint, [](nlohmann::ordered_json& state) { state["config"]["model"]["qk_norm"] = "none"; });
  EXPECT_FALSE(load_model(checkpoint, cpu().device).setup.model.qk_norm);
  EXPECT_TRUE(load_model(checkpoint, cpu().device).setup.data.validation_sample);
  // Without the key, measurements were of the first blocks.
  write_state(checkpoint, [](nlohmann::ordered_json& state) { state["config"]["data"].erase("validation_sample"); });
  EXPECT_FALSE(load_model(checkpoint, cpu().device).setup.data.validation_sample);
}

TEST(OpenCheckpoint, OfAStudyNamesItsConditions) {
  const TemporaryFolder folder;
  const TrainJob job = small_job("");
  const Corpus corpus = small_corpus(job.options);
  const Trainer trainer(make_decoder(job.model, 1), job.options, 1, corpus, cpu());
  const auto save_in = [&](const fs::path& run) { save_checkpoint(run / "checkpoints", trainer, {}, 2); };
  save_in(folder / "study/QK");
  save_in(folder / "study/NoQK");
  fs::create_directories(folder / "study/plots");
  const std::string study = (folder / "study").string();
  expect_error(Fault::input,
               fmt::format("{}: holds several models; give one of them: {}/NoQK, {}/QK", study, study, study),
               [&] { load_model(study, cpu().device); });
  save_in(folder / "seeds/seed_1/QK");
  save_in(folder / "seeds/seed_2/QK");
  expect_error(Fault::input, fmt::format("{}/seed_1/QK, ", (folder / "seeds").string()),
               [&] { load_model(folder / "seeds", cpu().device); });
  expect_error(Fault::input, "is no checkpoint (it has no state.json), holds none, and is no published model",
               [&] { load_model(folder / "study/plots", cpu().device); });
}

TEST(Checkpoint, OnAFullDiskTheLastGoodOneStays) {
  const TemporaryFolder folder;
  TrainJob job = small_job(folder.path());
  const Corpus corpus = small_corpus(job.options);
  Trainer trainer(make_decoder(job.model, 1), job.options, 1, corpus, cpu());
  save_checkpoint(folder / "checkpoints", trainer, {}, 2);
  trainer.step();
  CheckpointState state;
  state.step = 1;
  {
    const test::FileSizeLimit limit(20'000);
    expect_error(Fault::runtime, "model.safetensors",
                 [&] { save_checkpoint(folder / "checkpoints", trainer, state, 2); });
  }
  EXPECT_EQ(latest_checkpoint(folder / "checkpoints"), folder / "checkpoints/step-000000");
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder / "checkpoints")) names.push_back(entry.path().filename());
  EXPECT_EQ(names, std::vector<std::string>{"step-000000"});
}

// Hashes hold: the tensors are those that were saved, but not of the model that the configuration describes.
TEST(OpenCheckpoint, OfAnotherShapeThanItsConfigurationNamesTheTensor) {
  const TemporaryFolder folder;
  const TrainJob job = small_job("");
  const Corpus corpus = small_corpus(job.options);
  const Trainer trainer(make_decoder(job.model, 1), job.options, 1, corpus, cpu());
  headscope::Setup setup;  // a test has a Setup of its own
  setup.model = job.model;
  setup.train = job.options;
  const auto open_saved_as = [&](const char* name) {
    CheckpointState state;
    state.config = to_json(setup);
    save_checkpoint(folder / name / "checkpoints", trainer, state, 2);
    return load_model(folder / name, cpu().device);
  };
  EXPECT_EQ(open_saved_as("as it is").model.config.d_model, 32);
  setup.model.d_ff = 128;
  expect_error(Fault::input, "has shape [64, 32], the model's has [128, 32]", [&] { open_saved_as("wider"); });
  setup.model.d_ff = 64;
  setup.model.layers = 3;
  expect_error(Fault::input, "model.safetensors", [&] { open_saved_as("deeper"); });
}

}  // namespace
}  // namespace headscope
