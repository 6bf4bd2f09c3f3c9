#include "study/study_options.h"

#include "experiments/train_run.h"
#include "support/expect_error.h"

namespace headscope {
namespace {

using test::expect_error;

TEST(Preset, ShapesAreThoseOfTheDesign) {
  // 49152·512 + 22·(512·(2·512 + 2·256) + 2·512·2048) and 49152·2048 + 32·(2048·(2·2048 + 2·1024) + 2·2048·8192),
  // without gains.
  const auto matrices = [](const char* name) {
    const ParameterCounts counts = count_parameters(preset_setup(name).model);
    return counts.embedding + counts.matrices;
  };
  EXPECT_EQ(matrices("88m"), 88'604'672);
  EXPECT_EQ(matrices("1.5b"), 1'577'058'304);
  EXPECT_EQ(preset_setup("tiny").train.steps(), 150);
  EXPECT_EQ(preset_setup("1.5b").train.tokens_per_step(), 16'384);
}

// An operation is half of a multiplication with addition. Three products with every matrix: 88'604'672 weights. Seven
// of attention in each of 22 layers, over 1024 positions on average, 8 heads and 64 dimensions.
TEST(TrainingFlops, AreThoseOfTheProducts) {
  EXPECT_EQ(training_flops_per_token(preset_setup("88m").model, 2048),
            2.0 * 3 * 88'604'672 + 2.0 * 7 * 22 * 1024 * 8 * 64);
}

TEST(Preset, EveryOneIsValid) {
  for (const char* name : {"tiny", "88m", "1.5b"}) EXPECT_NO_THROW(validate(preset_setup(name))) << name;
  expect_error(Fault::input, "unknown preset '7b'; known are tiny, 88m, 1.5b", [] { preset_setup("7b"); });
}

TEST(Resolve, EntriesBeatThePresetAndLaterOnesEarlierOnes) {
  const StudyOptions options = resolve_setup<StudyOptions>({{"train.batch", "2", "file.yaml:1"},
                                                            {"preset", "88m", "--preset"},
                                                            {"train.batch", "3", "--set"},
                                                            {"train.seq_len", "128", "--set"}});
  EXPECT_EQ(options.model.d_model, 512);
  EXPECT_EQ(options.train.batch, 3);
}

TEST(Resolve, NamesTheNearestKey) {
  expect_error(Fault::input, "--set: unknown key 'train.bach'; did you mean 'train.batch'?", [] {
    resolve_setup<StudyOptions>({{"train.bach", "2", "--set"}});
  });
  expect_error(Fault::input, "'train.batch' is 'two'; expected a whole number", [] {
    resolve_setup<StudyOptions>({{"train.batch", "two", "--set"}});
  });
}

TEST(Resolve, TheWrittenConfigurationGivesTheSameOptions) {
  StudyOptions options = resolve_setup<StudyOptions>({{"preset", "88m", "--preset"}});
  options.train.schedule.kind = Schedule::cosine;
  options.seeds = "1,2";
  const auto object = to_json(options);
  EXPECT_EQ(to_json(resolve_setup<StudyOptions>(parse_yaml(yaml_of(object), "config.yaml"))), object);
}

TEST(Lists, AreCheckedPartByPart) {
  StudyOptions options;
  options.seeds = "42,43";
  EXPECT_EQ(seeds_of(options), (std::vector<std::uint64_t>{42, 43}));
  options.conditions = "NoQK,A";
  ASSERT_EQ(conditions_of(options).size(), 2u);
  EXPECT_EQ(conditions_of(options)[0].tag, "QK");
  EXPECT_EQ(conditions_of(options)[1].tag, "NoQK");
  const auto baseline = setup_of(options, conditions_of(options)[1]);
  EXPECT_FALSE(baseline.model.qk_norm);
  const Condition own{"X", "mine", "X", {{"optim.speed", "1"}}, ""};
  expect_error(Fault::input, "condition mine: unknown key 'optim.speed'", [&] { setup_of(options, own); });
  EXPECT_TRUE(setup_of(options, conditions_of(options)[0]).model.qk_norm);
  options.seeds = "42,x";
  expect_error(Fault::input, "study.seeds is '42,x'; expected whole numbers", [&] { seeds_of(options); });
  options.seeds = "4,4";
  expect_error(Fault::input, "4 is there twice", [&] { seeds_of(options); });
  options.conditions = "QK,Frozen";
  expect_error(Fault::input, "study.conditions: unknown condition 'Frozen'; known are QK, QK_frozen, NoQK,",
               [&] { conditions_of(options); });
}

TEST(Runs, AreConditionsTimesSeeds) {
  StudyOptions options;
  EXPECT_EQ(count_trainings(options), 3);
  options.seeds = "1,2";
  EXPECT_EQ(count_trainings(options), 6);
  for (int i = 3; i <= 1001; ++i) options.seeds += fmt::format(",{}", i);
  expect_error(Fault::input, "the number of study.seeds is 1001; expected 1 to 1000",
               [&] { count_trainings(options); });
}

// The words of earlier versions, and those of this one.
TEST(QkNorm, OldWordsAreTwoChoices) {
  const auto resolved = [](const char* key, const char* value) {
    return resolve_setup<TrainRunOptions>({{key, value, "--set"}});
  };
  EXPECT_TRUE(resolved("model.qk_norm", "learned").model.qk_norm);
  EXPECT_EQ(resolved("model.qk_norm", "learned").train.qk_gain, QkGain::learned);
  EXPECT_TRUE(resolved("model.qk_norm", "frozen").model.qk_norm);
  EXPECT_EQ(resolved("model.qk_norm", "frozen").train.qk_gain, QkGain::fixed);
  EXPECT_FALSE(resolved("model.qk_norm", "none").model.qk_norm);
  EXPECT_FALSE(resolved("model.qk_norm", "false").model.qk_norm);
  EXPECT_EQ(resolved("train.qk_gain", "fixed").train.qk_gain, QkGain::fixed);
  expect_error(Fault::input, "'model.qk_norm' is 'frosen'; expected true or false",
               [&] { resolved("model.qk_norm", "frosen"); });
  EXPECT_EQ(resolved("model.qk_norm", "none").train.qk_gain, QkGain::learned);
  for (const char* first : {"model.qk_norm", "train.qk_gain"}) {  // in any order
    const bool old_first = std::string_view(first) == "model.qk_norm";
    const ConfigEntry old{"model.qk_norm", "frozen", "--set"}, now{"train.qk_gain", "learned", "--set"};
    expect_error(Fault::input, "say model.qk_norm=true", [&] {
      resolve_setup<TrainRunOptions>({old_first ? old : now, old_first ? now : old});
    });
  }
  headscope::Setup none;
  none.model.qk_norm = false;
  validate(none);
  none.train.qk_gain = QkGain::fixed;
  expect_error(Fault::input, "without QK-Norm there is no gain", [&] { validate(none); });
  const auto frozen =
      in_current_words(nlohmann::ordered_json{{"model", {{"qk_norm", "frozen"}}}, {"train", {{"batch", 4}}}});
  EXPECT_EQ(frozen["model"]["qk_norm"], true);
  EXPECT_EQ(frozen["train"]["qk_gain"], "fixed");
  EXPECT_EQ(frozen["train"]["batch"], 4);
  EXPECT_EQ(in_current_words(frozen), frozen);
  // A study varies both itself.
  for (const char* key : {"model.qk_norm", "train.qk_gain"})
    expect_error(Fault::input, "unknown key", [&] { resolve_setup<StudyOptions>({{key, "true", "--set"}}); });
}

// A run that was begun before a key was there goes on: it had the key's default.
TEST(Resume, KeysThatARunDoesNotHaveAreTheirDefaults) {
  nlohmann::ordered_json before = to_json(preset_setup("88m"));
  nlohmann::ordered_json now = before;
  now["data"]["validation_sample"] = false;  // its probes measured the first blocks
  before["data"].erase("validation_sample");
  for (const char* key : {"deterministic", "recompute"}) before["train"].erase(key);
  EXPECT_EQ(nlohmann::json(in_current_words(before)), nlohmann::json(now));
}

}  // namespace
}  // namespace headscope
