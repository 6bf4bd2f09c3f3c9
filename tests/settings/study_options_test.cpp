#include "study/study_options.h"

#include "core/atomic_file.h"
#include "experiments/train_run.h"
#include "study/own_conditions.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

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

// A run that was begun before a key was there goes on as it began.
TEST(Resume, KeysThatARunDoesNotHaveAreWhatItDid) {
  nlohmann::ordered_json before = to_json(preset_setup("88m"));
  nlohmann::ordered_json now = before;
  now["data"]["validation_sample"] = false;  // its probes measured the first blocks
  before["data"].erase("validation_sample");
  for (const char* key : {"deterministic", "recompute"}) before["train"].erase(key);
  for (const char* key : {"qk_gain", "qk_scale"}) before["model"].erase(key);
  for (const char* key : {"gain_decay", "gain_decay_target", "embedding_decay"}) before["optim"].erase(key);
  EXPECT_EQ(nlohmann::json(in_current_words(before)), nlohmann::json(now));
  nlohmann::ordered_json study = to_json(StudyOptions());
  study["study"].erase("own_conditions");
  EXPECT_EQ(nlohmann::json(in_current_words(study)), nlohmann::json(to_json(StudyOptions())));
}

// The configuration says which numbers follow another key: running it again with that key changed changes them, too.
TEST(Decay, FollowsWeightDecayUnlessItIsGiven) {
  const auto resolved = [](std::vector<ConfigEntry> entries) { return resolve_setup<TrainRunOptions>(entries); };
  const TrainRunOptions plain = resolved({{"optim.weight_decay", "0.3", "--set"}});
  EXPECT_EQ(plain.train.optim.decay_of_gains(), 0.3);
  EXPECT_EQ(plain.train.optim.decay_of_embedding(), 0.3);
  EXPECT_EQ(to_json(plain)["optim"]["gain_decay"], "weight_decay");
  EXPECT_EQ(to_json(plain)["optim"]["embedding_decay"], "weight_decay");
  const TrainRunOptions own = resolved({{"optim.gain_decay", "0", "--set"}, {"optim.embedding_decay", "0.1", "--set"}});
  EXPECT_EQ(own.train.optim.decay_of_gains(), 0);
  EXPECT_EQ(own.train.optim.decay_of_embedding(), 0.1);
  EXPECT_EQ(own.train.optim.adamw.weight_decay, 0.2);
  EXPECT_EQ(to_json(own)["optim"]["gain_decay"], 0);
  EXPECT_EQ(to_json(resolved(parse_yaml(yaml_of(to_json(own)), "config.yaml"))), to_json(own));
  const TrainRunOptions back = resolved({{"optim.gain_decay", "0", ""}, {"optim.gain_decay", "weight_decay", ""}});
  EXPECT_EQ(back.train.optim.decay_of_gains(), 0.2);
  expect_error(Fault::input,
               "'optim.gain_decay' is 'none'; expected a finite number, at least 0 and at most 3e+38, or weight_decay",
               [&] {
                 resolved({{"optim.gain_decay", "none", "--set"}});
               });
  expect_error(Fault::input, "--set: optim.gain_decay is -1; expected", [&] {
    resolved({{"optim.gain_decay", "-1", "--set"}});
  });
}

// 1/(0.02²·d_model): the numbers that the study's design names.
TEST(QkScale, ThatIsMatchedFollowsFromWidthAndStart) {
  for (const auto& [preset, factor] : {std::pair("tiny", 19.53125), {"88m", 4.8828125}, {"1.5b", 1.220703125}}) {
    const auto options = resolve_setup<TrainRunOptions>({{"preset", preset, ""}, {"model.qk_scale", "matched", ""}});
    EXPECT_NEAR(options.model.qk_factor(), factor, 1e-12) << preset;
    EXPECT_EQ(to_json(options)["model"]["qk_scale"], "matched");
  }
  const auto wider =
      resolve_setup<TrainRunOptions>({{"model.init_std", "0.04", ""}, {"model.qk_scale", "matched", ""}});
  EXPECT_NEAR(wider.model.qk_factor(), 19.53125 / 4, 1e-12);
  EXPECT_EQ(DecoderConfig().qk_factor(), 1);
}

TEST(Controls, ChangeOneThingEach) {
  StudyOptions options = resolve_setup<StudyOptions>(with_controls({{"study.conditions", "NoQK,A₀", "--conditions"}}));
  EXPECT_EQ(options.conditions, "NoQK,A₀,QK_decay_to_one,QK_scalar,NoQK_scaled");
  options = resolve_setup<StudyOptions>(with_controls({}));
  const auto conditions = conditions_of(options);
  ASSERT_EQ(conditions.size(), 7u);
  validate(options);
  const auto setup = [&](std::size_t i) { return setup_of(options, conditions[i]); };
  EXPECT_EQ(setup(3).train.optim.decay_of_gains(), 0);
  EXPECT_EQ(setup(3).train.optim.decay_of_embedding(), 0.2);
  EXPECT_EQ(setup(4).train.optim.decay_of_gains(), 0.2);
  EXPECT_EQ(setup(4).train.optim.gain_decay_target, 1);
  EXPECT_EQ(setup(5).model.qk_gain, QkGainShape::scalar);
  EXPECT_EQ(setup(5).train.optim.decay_of_gains(), 0);
  EXPECT_FALSE(setup(6).model.qk_norm);
  EXPECT_NEAR(setup(6).model.qk_factor(), 19.53125, 1e-12);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(setup(i).model.qk_factor(), 1);
    EXPECT_EQ(setup(i).train.optim.decay_of_gains(), 0.2);
  }
}

constexpr const char* own_text = R"(
half:
  letter: H
  name: half of the decay
  changes:
    optim: {gain_decay: 0.1}
  isolates: the dose of decay
sharp:
  changes: {model.qk_norm: false, model.qk_scale: 2}
)";

TEST(StudyOptions, ANumberBeyondItsTypeIsRefusedWithItsRange) {
  for (const char* tokens : {"1e18", "1e400", "99999999999999999999", "many"})
    expect_error(Fault::input,
                 fmt::format("--set: 'train.tokens' is '{}'; expected a whole number, such as 42, 1e5 or 100k, 1 to "
                             "1000000000000000",
                             tokens),
                 [&] {
                   resolve_setup<StudyOptions>({{"train.tokens", tokens, "--set"}});
                 });
}

TEST(OwnConditions, AreReadFromYaml) {
  const auto own = parse_conditions(own_text, "own.yaml");
  ASSERT_EQ(own.size(), 2u);
  EXPECT_EQ(own[0].tag, "half");
  EXPECT_EQ(own[0].letter, "H");
  EXPECT_EQ(own[0].name, "half of the decay");
  EXPECT_EQ(own[0].isolates, "the dose of decay");
  EXPECT_EQ(own[0].changes, (decltype(own[0].changes){{"optim.gain_decay", "0.1"}}));
  EXPECT_EQ(own[1].letter, "sharp");
  EXPECT_EQ(own[1].changes.size(), 2u);
  EXPECT_EQ(text_of(parse_conditions(text_of(own), "again")), text_of(own));
  const auto refused = [](const std::string& message, const std::string& text) {
    expect_error(Fault::input, message, [&] { parse_conditions(text, "own.yaml"); });
  };
  refused("own.yaml:1: 'a b' is no name for a condition", "a b: {changes: {optim.eps: 1}}");
  refused("own.yaml:1: there is a condition QK already", "QK: {changes: {optim.eps: 1}}");
  refused("condition a: the letter B is taken", "a: {letter: B, changes: {optim.eps: 1}}");
  refused("condition b: the letter X is taken",
          "{a: {letter: X, changes: {optim.eps: 1}}, b: {letter: X, changes: {optim.eps: 1}}}");
  refused("condition a: the letter b is taken",
          "{a: {letter: b, changes: {optim.eps: 1}}, b: {letter: X, changes: {optim.eps: 1}}}");
  for (const char* taken : {"A", "S", "gamma", "total"})
    refused("own.yaml:1: " + std::string(taken) + " is the name of an effect or the letter of a condition",
            std::string(taken) + ": {letter: X, changes: {optim.eps: 1}}");
  refused("condition a: unknown field 'chnges.optim.eps'", "a: {chnges: {optim.eps: 1}}");
  refused("condition a changes nothing", "a: {letter: X}");
  refused("'a' is a single value", "a: 1");
}

TEST(OwnConditions, AreTrainedBesideTheOthers) {
  const test::TemporaryFolder folder;
  write_file(folder / "own.yaml", own_text);
  const std::string file = (folder / "own.yaml").string();
  const auto entries = with_own_conditions({{"study.conditions", "QK," + file, "--conditions"}});
  const StudyOptions options = resolve_setup<StudyOptions>(entries);
  EXPECT_EQ(options.conditions, "QK,half,sharp");
  validate(options);
  const auto conditions = conditions_of(options);
  ASSERT_EQ(conditions.size(), 3u);
  EXPECT_EQ(conditions[1].tag, "half");
  EXPECT_EQ(setup_of(options, conditions[1]).train.optim.decay_of_gains(), 0.1);
  EXPECT_EQ(setup_of(options, conditions[2]).model.qk_factor(), 2);
  // The written configuration gives the same without the file; a configuration may hold them itself.
  const auto again = with_own_conditions(parse_yaml(yaml_of(to_json(options)), "config.yaml"));
  EXPECT_EQ(to_json(resolve_setup<StudyOptions>(again)), to_json(options));
  const auto inside = with_own_conditions(
      parse_yaml("study: {conditions: half, own_conditions: {half: {changes: {optim.gain_decay: 0.1}}}}", "c.yaml"));
  EXPECT_EQ(conditions_of(resolve_setup<StudyOptions>(inside))[0].tag, "half");
  for (const char* twice : {"QK,QK", "QK,A", "NoQK,QK,C", "half,QK,H"}) {
    StudyOptions repeated = options;
    repeated.conditions = twice;
    expect_error(Fault::input, fmt::format("study.conditions is '{}'; ", twice), [&] { conditions_of(repeated); });
  }
}

// Flags come behind the file.
TEST(OwnConditions, WhatComesLaterGoesOverWhatWasThere) {
  const auto half_of = [](const std::vector<ConfigEntry>& flags) {
    std::vector<ConfigEntry> entries = parse_yaml(
        "study: {own_conditions: {half: {letter: H, changes: {optim.gain_decay: 0.1, optim.eps: 1}}}}", "c.yaml");
    entries.insert(entries.end(), flags.begin(), flags.end());
    const auto own = own_conditions_of(resolve_setup<StudyOptions>(with_own_conditions(entries)));
    EXPECT_EQ(own.size(), 1u);
    return own.front();
  };
  using Changes = decltype(Condition::changes);
  EXPECT_EQ(half_of({}).changes, (Changes{{"optim.gain_decay", "0.1"}, {"optim.eps", "1"}}));
  const Condition text = half_of({{"study.own_conditions", "half: {changes: {optim.gain_decay: 0.2}}", "--set"}});
  EXPECT_EQ(text.changes, (Changes{{"optim.gain_decay", "0.2"}}));
  EXPECT_EQ(text.letter, "half");
  const Condition one = half_of({{"study.own_conditions.half.changes.optim.gain_decay", "0.3", "--set"}});
  EXPECT_EQ(one.changes, (Changes{{"optim.gain_decay", "0.3"}, {"optim.eps", "1"}}));
  EXPECT_EQ(one.letter, "H");
}

TEST(OwnConditions, LettersBecomeTags) {
  const test::TemporaryFolder folder;
  write_file(folder / "own.yaml", own_text);
  const auto entries = with_own_conditions(
      {{"study.own_conditions", "third: {letter: T, changes: {optim.eps: 1}}", "--set"},
       {"study.conditions", "A,T,C′,QK_frozen,H," + (folder / "own.yaml").string(), "--conditions"}});
  ASSERT_EQ(entries.front().key, "study.conditions");
  EXPECT_EQ(entries.front().value, "QK,third,NoQK_scaled,QK_frozen,half,half,sharp");
  EXPECT_EQ(with_own_conditions({{"study.conditions", "X", ""}}).front().value, "X");  // conditions_of refuses it
}

TEST(OwnConditions, ChangeWhatConditionsMayDifferIn) {
  const auto refused = [](const char* message, const std::string& changes) {
    StudyOptions options;
    options.own_conditions = "own: {changes: {" + changes + "}}";
    options.conditions = "QK,own";
    expect_error(Fault::input, message, [&] { validate(options); });
  };
  refused("condition own: unknown key 'optim.gain_decy'; did you mean 'optim.gain_decay'", "optim.gain_decy: 1");
  refused("condition own: 'optim.gain_decay' is 'x'; expected a finite number", "optim.gain_decay: x");
  refused("condition own: train.batch is the same in all conditions", "train.batch: 2");
  refused("condition own: model.layers is the same in all conditions", "model.layers: 2");
  refused("condition own: data.path is the same in all conditions", "data.path: x");
  refused("condition own: model.heads is 3, model.kv_heads 2", "model.heads: 3");
  StudyOptions options;
  options.own_conditions = "own: {changes: {optim.eps: 1}}";
  options.conditions = "xyz";
  expect_error(Fault::input,
               "unknown condition 'xyz'; known are QK, QK_frozen, NoQK, QK_nodecay, QK_decay_to_one, QK_scalar, "
               "NoQK_scaled, own",
               [&] { conditions_of(options); });
}

}  // namespace
}  // namespace headscope
