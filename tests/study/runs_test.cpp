#include "study/runs.h"

#include <gtest/gtest.h>

#include "study/synthetic.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::expect_error;
using test::TemporaryFolder;
namespace fs = std::filesystem;

TEST(Study, OneSeedLiesDirectlyInTheFolder) {
  const TemporaryFolder folder;
  synthetic::write_seed(folder / "mine", 65, 60, 63);
  const Study study = load_study({folder / "mine" / ""});
  EXPECT_EQ(study.title, "mine");
  ASSERT_EQ(study.seeds.size(), 1u);
  for (std::size_t i = 0; i < n_conditions; ++i) EXPECT_EQ(study.seeds[0].conditions[i]->tag, condition_tags[i]);
  EXPECT_EQ(study.inputs.size(), 3u);
}

TEST(Study, SeveralSeedsComeInOrderOfTheirNumbers) {
  const TemporaryFolder folder;
  for (const char* name : {"seed_42", "seed_7", "seed_100"}) synthetic::write_seed(folder / name, 65, 60, 63);
  fs::create_directories(folder / "seed_5");     // without results
  fs::create_directories(folder / "seed_x/QK");  // not a number
  const Study study = load_study({folder.path()});
  ASSERT_EQ(study.seeds.size(), 3u);
  EXPECT_EQ(study.seeds[0].name, "seed_7");
  EXPECT_EQ(study.seeds[1].name, "seed_42");
  EXPECT_EQ(study.seeds[2].name, "seed_100");
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
  EXPECT_FALSE(study.seeds[0].conditions[0] || study.seeds[0].conditions[1]);
  EXPECT_TRUE(study.seeds[0].conditions[2].has_value());
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
  expect_error(Fault::input, "NoQK/results.json: has 4 layers", [&] { load_study({folder / "depth"}); });
  fs::create_directories(folder / "tag/NoQK");
  write_file(folder / "tag/NoQK/results.json", results_text(synthetic::results({"QK"})));
  expect_error(Fault::input, "tag/NoQK/results.json: tag is 'QK'; expected 'NoQK'",
               [&] { load_study({folder / "tag"}); });
}

TEST(Study, IsComparedAtTheLastProbeThatAllRunsHave) {
  const TemporaryFolder folder;
  synthetic::write(synthetic::results({.tag = "QK", .probes = 9}), folder / "study");
  synthetic::write(synthetic::results({.tag = "NoQK", .probes = 4}), folder / "study");
  EXPECT_EQ(last_common_tokens(load_study({folder / "study"})), 3 * 983040);
  ConditionResults apart = synthetic::results({"QK_frozen"});
  for (std::int64_t& tokens : apart.tokens) ++tokens;
  synthetic::write(apart, folder / "study");
  expect_error(Fault::input, "no probe at the same number of tokens",
               [&] { last_common_tokens(load_study({folder / "study"})); });
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
