#include "study/runs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "study/synthetic.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::expect_error;
using test::TemporaryFolder;
using testing::HasSubstr;
namespace fs = std::filesystem;

TEST(Study, OneSeedLiesDirectlyInTheFolder) {
  const TemporaryFolder folder;
  synthetic::write_seed(folder / "mine", 65, 60, 63);
  const Study study = load_study({folder / "mine" / ""});
  EXPECT_EQ(study.title, "mine");
  ASSERT_EQ(study.seeds.size(), 1u);
  for (const char* tag : {"QK", "QK_frozen", "NoQK"}) EXPECT_EQ(study.seeds[0].find(tag)->tag, tag);
  EXPECT_EQ(study.inputs.size(), 3u);
}

TEST(Study, SeveralSeedsComeInOrderOfTheirNumbers) {
  const TemporaryFolder folder;
  for (const char* name : {"seed_42", "seed_7", "seed_100"}) synthetic::write_seed(folder / name, 65, 60, 63);
  fs::create_directories(folder / "seed_5");     // without results
  fs::create_directories(folder / "seed_x/QK");  // not a number
  const Study study = load_study({folder.path()});
  EXPECT_EQ(study.warnings.size(), 1u);
  ASSERT_EQ(study.seeds.size(), 3u);
  EXPECT_EQ(study.seeds[0].name, "seed_7");
  EXPECT_EQ(study.seeds[1].name, "seed_42");
  EXPECT_EQ(study.seeds[2].name, "seed_100");
}

TEST(Study, FoldersThatAreLeftOutAreNamed) {
  const TemporaryFolder folder;
  const fs::path data = folder / "data";
  for (const char* name : {"seed_1", "seed_7", "seed_007", "seed_4x", "Seed_42", "first"})
    synthetic::write_seed(data / name, 65, 60, 63);
  for (const char* name : {"seed_1/QK_scalar", "seed_1/plots", "seed_1/notes", "logs", ".hidden"})
    fs::create_directories(data / name);
  synthetic::write_seed(folder / "aside", 65, 60, 63);
  fs::rename(folder / "aside/QK", data / "seed_1/QK (copy)");
  const Study study = load_study({data});
  EXPECT_EQ(study.seeds.size(), 2u);
  const std::string expected = "; expected folders seed_N, or names of letters, digits, - and _, with results.json";
  EXPECT_EQ(study.warnings,
            (std::vector<std::string>{data.string() + ": left out: Seed_42, first, seed_007, seed_4x" + expected,
                                      (data / "seed_1").string() + ": left out: QK (copy), QK_scalar" + expected}));
}

TEST(Study, AListOfFoldersIsAListOfSeeds) {
  const TemporaryFolder folder;
  synthetic::write_seed(folder / "first", 65, 60, 63);
  synthetic::write_seed(folder / "second/seed_1", 65, 60, 63);
  synthetic::write_seed(folder / "second/seed_2", 65, 60, 63);
  EXPECT_EQ(load_study({folder / "first", folder / "second"}).seeds.size(), 3u);
  expect_error(Fault::input, "is given twice", [&] { load_study({folder / "first", folder / "second/../first"}); });
}

TEST(Study, AConditionMayBeAbsentButNotAll) {
  const TemporaryFolder folder;
  synthetic::write(synthetic::results({"NoQK"}), folder / "part");
  const Study study = load_study({folder / "part"});
  EXPECT_EQ(study.seeds[0].find("QK"), nullptr);
  EXPECT_NE(study.seeds[0].find("NoQK"), nullptr);
  EXPECT_EQ(conditions_of(study).size(), 3u);  // A, B and C are named all the same
  fs::create_directories(folder / "empty");
  expect_error(Fault::input, "empty: holds no results; expected QK/results.json",
               [&] { load_study({folder / "empty"}); });
  expect_error(Fault::input, "absent: is not a folder", [&] { load_study({folder / "absent"}); });
}

TEST(Study, WhatIsAmbiguousOrDoesNotFitIsRefused) {
  const TemporaryFolder folder;
  synthetic::write_seed(folder / "both", 65, 60, 63);
  synthetic::write_seed(folder / "both/seed_1", 65, 60, 63);
  expect_error(Fault::input, "both: holds both", [&] { load_study({folder / "both"}); });
  synthetic::write(synthetic::results({"QK"}), folder / "depth");
  synthetic::write(synthetic::results({.tag = "NoQK", .layers = 4}), folder / "depth");
  expect_error(Fault::input, "QK/results.json: has 3 layers", [&] { load_study({folder / "depth"}); });
  fs::create_directories(folder / "tag/NoQK");
  write_file(folder / "tag/NoQK/results.json", results_text(synthetic::results({"QK"})));
  expect_error(Fault::input, "tag/NoQK/results.json: tag is 'QK'; expected 'NoQK'",
               [&] { load_study({folder / "tag"}); });
}

TEST(Study, IsComparedAtTheLastProbeThatAllRunsHave) {
  const TemporaryFolder folder;
  synthetic::write(synthetic::results({.tag = "QK", .probes = 9}), folder / "study");
  synthetic::write(synthetic::results({.tag = "NoQK", .probes = 4}), folder / "study");
  EXPECT_EQ(common_tokens(load_study({folder / "study"})), (Integers{0, 983040, 2 * 983040, 3 * 983040}));
  ConditionResults apart = synthetic::results({"QK_frozen"});
  for (std::int64_t& tokens : apart.tokens) ++tokens;
  synthetic::write(apart, folder / "study");
  expect_error(Fault::input, "no probe at the same number of tokens",
               [&] { common_tokens(load_study({folder / "study"})); });
}

TEST(Study, ARunThatDivergedDoesNotShortenTheOthers) {
  Study study;
  study.seeds.push_back({"seed_1", {{"QK", synthetic::results({.tag = "QK", .probes = 9})}}});
  ConditionResults& diverged = study.seeds[0].runs["NoQK"] = synthetic::results({.tag = "NoQK", .probes = 4});
  EXPECT_EQ(common_tokens(study).back(), 3 * 983040);
  diverged.mean_pr.back() = std::nan("");
  EXPECT_EQ(common_tokens(study).back(), 8 * 983040);
}

TEST(Study, HasDivergedWhenItsEndLacksWhatWasThere) {
  const auto diverged = [](auto change) {
    ConditionResults results = synthetic::results({});
    change(results);
    return has_diverged(results);
  };
  const double none = std::nan("");
  EXPECT_FALSE(diverged([](auto&) {}));
  EXPECT_TRUE(diverged([&](auto& results) { results.mean_pr.back() = none; }));
  EXPECT_TRUE(diverged([&](auto& results) { results.val_loss.back() = none; }));
  EXPECT_TRUE(diverged([&](auto& results) { results.loss.back() = HUGE_VAL; }));
  EXPECT_FALSE(diverged([&](auto& results) { results.val_loss.assign(results.tokens.size(), none); }));  // never there
}

TEST(Study, OneMayHaveConditionsOfItsOwn) {
  const TemporaryFolder folder;
  synthetic::write_seed(folder / "study", 65, 60, 63);
  synthetic::write(synthetic::results({"warm-gain"}), folder / "study");
  synthetic::write(synthetic::results({"QK_scalar"}), folder / "study");
  const auto conditions = conditions_of(load_study({folder / "study"}));
  ASSERT_EQ(conditions.size(), 5u);
  EXPECT_EQ(conditions[3].letter, "S");  // a known one before
  EXPECT_EQ(conditions[4].tag, "warm-gain");
  EXPECT_EQ(conditions[4].letter, "warm-gain");
}

TEST(Study, ALetterIsThatOfOneCondition) {
  const std::vector<Condition> own = {
      {"H", "half", "H half", {}, ""}, {"H", "other", "H other", {}, ""}, {"tag", "third", "third", {}, ""}};
  std::set<std::string> letters;
  for (const Condition& condition : conditions_with({"half", "other", "third", "tag"}, own))
    EXPECT_TRUE(letters.insert(condition.letter).second) << condition.letter;
  EXPECT_TRUE(letters.contains("H") && letters.contains("other") && letters.contains("third"));
}

TEST(Study, FoldersOfTheSameSeedWithOtherConditionsAreOneSeed) {
  const TemporaryFolder folder;
  for (const char* seed : {"seed_1", "seed_2"}) synthetic::write_seed(folder / "main" / seed, 65, 60, 63);
  synthetic::write(synthetic::results({"QK_scalar"}), folder / "controls/seed_2");
  synthetic::write(synthetic::results({"QK", 66}), folder / "again/seed_1");
  const Study study = load_study({folder / "main", folder / "controls"});
  ASSERT_EQ(study.seeds.size(), 2u);
  EXPECT_EQ(study.seeds[0].find("QK_scalar"), nullptr);
  EXPECT_NE(study.seeds[1].find("QK_scalar"), nullptr);
  EXPECT_EQ(load_study({folder / "main", folder / "again"}).seeds.size(), 3u);  // QK of seed 1 twice: two seeds
}

// A manifest of a run that measured these blocks; empty: it does not say which.
nlohmann::ordered_json manifest_with(const std::vector<int>& blocks, const std::string& hash = "a") {
  nlohmann::ordered_json object = {
      {"program", "headscope"},
      {"command", "study"},
      {"status", "complete"},
      {"started", "now"},
      {"config",
       {{"train", {{"tokens", 100}, {"batch", 2}, {"seq_len", 8}}}, {"data", {{"path", "x.bin"}, {"validation", ""}}}}},
      {"inputs_xxh3_128", {{"x.bin", hash}}}};
  if (!blocks.empty()) object["held_out"] = {{"probe_blocks", blocks}};
  return object;
}

// The warnings about two runs with these manifests: seeds, and controls of one of them.
std::vector<std::string> warnings_of(const nlohmann::ordered_json& first, const nlohmann::ordered_json& second,
                                     const TemporaryFolder& folder) {
  for (const char* seed : {"seed_1", "seed_2"}) synthetic::write_seed(folder / "main" / seed, 65, 60, 63);
  synthetic::write(synthetic::results({"QK_scalar"}), folder / "controls");
  write_file(folder / "main/manifest.json", first.dump());
  write_file(folder / "controls/manifest.json", second.dump());
  const auto warnings = load_study({folder / "main", folder / "controls"}).warnings;
  // The folder of a seed is a part of its run.
  EXPECT_EQ(load_study({folder / "main/seed_2", folder / "controls"}).warnings.size(), warnings.size());
  return warnings;
}

TEST(Study, RunsWhoseProbesMeasuredTheSameTextAreComparedSilently) {
  const TemporaryFolder folder;
  const auto sample = manifest_with({7, 3});
  EXPECT_TRUE(warnings_of(sample, sample, folder).empty());
  EXPECT_TRUE(
      warnings_of(manifest_with({}), manifest_with({0, 1}), folder).empty());  // a run that does not say it: the first
  auto moved = sample;                                                         // the same tokens in another place
  moved["config"]["data"]["path"] = "y.bin";
  EXPECT_TRUE(warnings_of(sample, moved, folder).empty());
  auto longer = manifest_with({7, 3}, "b");  // it read more of the same data, and its validation text is as long
  longer["config"]["train"]["tokens"] = 200;
  EXPECT_TRUE(warnings_of(sample, longer, folder).empty());
  auto unfinished = sample;  // without a hash
  unfinished.erase("inputs_xxh3_128");
  EXPECT_TRUE(warnings_of(sample, unfinished, folder).empty());
  const nlohmann::ordered_json analysis = {{"program", "headscope"},
                                           {"command", "study"},
                                           {"status", "complete"},
                                           {"started", "now"},
                                           {"config", {{"tau", 1}}}};
  EXPECT_TRUE(warnings_of(analysis, sample, folder).empty());
}

TEST(Study, RunsOfDifferentSettingsGetAWarning) {
  const TemporaryFolder folder;
  auto first = manifest_with({7, 3}), second = first;
  first["config"]["optim"] = {{"muon_lr", 0.02}, {"eps", 1e-8}};
  second["config"]["optim"] = {{"muon_lr", 0.002}, {"eps", 1e-8}};
  first["config"]["train"]["clip"] = 1;
  second["config"]["train"]["clip"] = 2;
  const auto warnings = warnings_of(first, second, folder);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("different settings: optim.muon_lr (0.02 and 0.002), train.clip (1 and 2);"));
}

TEST(Study, ARunThatIsThereTwiceCountsOnce) {
  const TemporaryFolder folder;
  for (const char* place : {"one/seed_42", "two/seed_42"}) synthetic::write_seed(folder.path() / place, 66, 60, 63);
  synthetic::write(synthetic::results({"mine", 64}), folder.path() / "two/seed_42");
  const Study study = load_study({folder.path() / "one", folder.path() / "two"});
  ASSERT_EQ(study.seeds.size(), 1u);
  EXPECT_EQ(study.seeds[0].runs.size(), 4u);
  ASSERT_EQ(study.warnings.size(), 3u);
  EXPECT_THAT(study.warnings[0], HasSubstr("two/seed_42/NoQK/results.json is the same run as "));
  synthetic::write(synthetic::results({"QK", 65}), folder.path() / "two/seed_42");  // another run of the same seed
  EXPECT_EQ(load_study({folder.path() / "one", folder.path() / "two"}).seeds.size(), 2u);
}

TEST(Study, RunsWhoseProbesMeasuredDifferentTextGetAWarning) {
  const TemporaryFolder folder;
  const auto warned = [&](const std::string& difference, const auto& first, const auto& second) {
    const auto warnings = warnings_of(first, second, folder);
    ASSERT_EQ(warnings.size(), 1u) << difference;
    EXPECT_EQ(warnings[0],
              fmt::format("{} and {}: their probes measured different text ({}); their PR cannot be compared",
                          (folder / "main").string(), (folder / "controls").string(), difference));
  };
  const auto sample = manifest_with({7, 3});
  warned("other blocks of the validation text", manifest_with({}), sample);
  warned("the hashes of their data differ", sample, manifest_with({7, 3}, "b"));
  auto other = sample;
  other["config"]["train"]["batch"] = 4;
  warned("train.batch is 2 and 4", sample, other);
  other = sample;
  other["config"]["train"]["seq_len"] = 4;
  warned("train.seq_len is 8 and 4", sample, other);
  other = manifest_with({1, 9}, "b");
  other["config"]["train"]["tokens"] = 200;
  warned("train.tokens is 100 and 200", sample, other);
  other = manifest_with({7, 3}, "b");
  other["config"]["data"]["path"] = "y.bin";
  warned(R"(data.path is "x.bin" and "y.bin")", sample, other);
}

TEST(Study, AManifestThatCannotBeReadGetsAWarning) {
  const TemporaryFolder folder;
  synthetic::write_seed(folder / "mine", 65, 60, 63);
  write_file(folder / "mine/manifest.json", "{");
  const Study study = load_study({folder / "mine"});
  ASSERT_EQ(study.warnings.size(), 1u);
  EXPECT_NE(study.warnings[0].find("manifest.json: is damaged or of another program"), std::string::npos);
  EXPECT_NE(study.warnings[0].find("what the manifest says of conditions and data is not known"), std::string::npos);
}

TEST(Study, AProbeIsFoundByItsTokens) {
  ConditionResults results = synthetic::results({.probes = 4});
  results.tokens = {0, 10, 10, 30};
  EXPECT_EQ(probe_at(results, 0), 0u);
  EXPECT_EQ(probe_at(results, 10), 2u);  // the last of equals
  EXPECT_EQ(probe_at(results, 30), 3u);
  EXPECT_FALSE(probe_at(results, 20) || probe_at(results, -1) || probe_at(results, 31));
}

}  // namespace
}  // namespace headscope
