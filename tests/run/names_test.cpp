#include "run/names.h"

#include <gtest/gtest.h>

namespace headscope {
namespace {

using nlohmann::ordered_json;

TEST(RunNames, AreThoseOfRunsAndNoOthers) {
  const RunNames names;
  for (const char* name : {"roles/mine-1.2/roles.json",
                           "QK/roles/mine/train/step-12/plots/role_map.png",
                           "roles/mine/train/roles.parquet",
                           "manifest.json",
                           "plots/role_map.png",
                           "plots/bucket_heatmap_l03.labels.dat",
                           "NoQK/checkpoints/step-000120/state.json",
                           "heads.parquet.parts/part-00000.parquet",
                           "2_key_pr_causal.svg",
                           "data/l00h01k/data.parquet",
                           ".manifest.json.12.0.tmp",
                           "plots/.role_map.png.7.12.tmp",
                           ".replaced/QK/results.json",
                           "progress.json",
                           "attention.parquet",
                           "report.html",
                           "seed_42/QK/report.html",
                           "tokens.parquet",
                           "examples.parquet",
                           "seed_42/QK/events.jsonl",
                           ".progress.json.3.1.tmp",
                           ".writing/.replaced/config.yaml"})
    EXPECT_TRUE(names.is_ours(name, /*is_folder=*/false)) << name;
  for (const char* name : {"plots", "seed_42/QK/steps.parquet", "seed_42", ".heads.parquet.merged", ".replaced/QK",
                           ".writing", "plots/.drawing-x7Za"})
    EXPECT_TRUE(names.is_ours(name, /*is_folder=*/true)) << name;
  for (const char* name : {"plots", "seed_42", "heads.parquet", "roles/roles.json"})  // a file where we make a folder
    EXPECT_FALSE(names.is_ours(name, /*is_folder=*/false)) << name;
  EXPECT_FALSE(names.is_ours("manifest.json", /*is_folder=*/true));
  for (const char* name : {"thesis.tex",
                           "plots/mine.png",
                           ".git",
                           "seed_/QK",
                           "seed_42/notes",
                           "heads.parquet/part-.parquet",
                           "roles/.mine/roles.json",
                           "roles/mine/manifest.json",
                           "roles/mine/step-x/roles.json",
                           "manifest.json~",
                           "checkpoints/step-x",
                           "plots/role_map.pdf",
                           "data/l00h01k/more",
                           ".mine.12.0.tmp",
                           "QK/QK",
                           "my/.writing",
                           "my.csv",
                           "notes/.drawing-abcdef",
                           ".writing/thesis",
                           ".replaced/QK/x",
                           ".drawing-x7Za/mine"})
    for (const bool is_folder : {false, true}) EXPECT_FALSE(names.is_ours(name, is_folder)) << name;
  const ordered_json config = {{"output_csv", "my.csv"}, {"bucket_csv", "../thesis.csv"}, {"component_csv", 3}};
  RunNames chosen;
  chosen.add_chosen({{"config", config}});
  EXPECT_TRUE(chosen.is_ours("my.csv", false));
  EXPECT_FALSE(chosen.is_ours("thesis.csv", false));
  EXPECT_FALSE(chosen.is_ours("../thesis.csv", false));
}

TEST(RunNames, ConditionsThatAUserDefinesAreOfTheRun) {
  RunNames names;
  EXPECT_FALSE(names.is_ours("half/results.json", false));
  names.add_chosen({{"config", {{"study", {{"conditions", "QK,half,../x"}}}}}});
  EXPECT_TRUE(names.is_ours("half/results.json", false));
  EXPECT_TRUE(names.is_ours("seed_3/half/steps.parquet/part-00000.parquet", false));
  EXPECT_FALSE(names.is_ours("half/thesis.txt", false));
  EXPECT_FALSE(names.is_ours("../x/results.json", false));
  RunNames analysis, damaged;
  analysis.add_chosen({{"config", {{"conditions", "QK,half"}}}});
  EXPECT_TRUE(analysis.is_ours("half/results.json", false));
  damaged.add_chosen({{"config", {{"study", {{"conditions", 3}}}}}});
  EXPECT_FALSE(damaged.is_ours("half/results.json", false));
}

}  // namespace
}  // namespace headscope
