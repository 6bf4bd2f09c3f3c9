#include "model/revision.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <tuple>

#include "core/atomic_file.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using Said = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::string>;  // step, tokens, stage, model

Said said_by(std::string_view name) {
  const auto revision = parse_revision(name);
  return revision ? Said{revision->step, revision->tokens, revision->stage, revision->of_model} : Said{-1, 0, 0, ""};
}

// Names as they are published: Pythia, OLMo, trainers of Hugging Face and Megatron.
TEST(Revision, NamesSayTheirStep) {
  EXPECT_EQ(said_by("step1000"), Said(1000, 0, 0, ""));
  EXPECT_EQ(said_by("step0"), Said(0, 0, 0, ""));
  EXPECT_EQ(said_by("pythia-70m-step143000"), Said(143000, 0, 0, "pythia-70m"));
  EXPECT_EQ(said_by("step1000-tokens4B"), Said(1000, 4'000'000'000, 0, ""));
  EXPECT_EQ(said_by("stage1-step1907359-tokens4001B"), Said(1907359, 4'001'000'000'000, 1, ""));
  EXPECT_EQ(said_by("stage2-ingredient1-step1000-tokens5B"), Said(1000, 5'000'000'000, 2, ""));
  EXPECT_EQ(said_by("OLMo-2-0425-1B_stage1-step20000-tokens42.5B"), Said(20000, 42'500'000'000, 1, "OLMo-2-0425-1B"));
  EXPECT_EQ(said_by("checkpoint-500"), Said(500, 0, 0, ""));
  EXPECT_EQ(said_by("iter_0005000"), Said(5000, 0, 0, ""));
  EXPECT_EQ(said_by("global_step250"), Said(250, 0, 0, ""));
  EXPECT_EQ(said_by("model-Step_30.gguf"), Said(30, 0, 0, "model"));
  EXPECT_EQ(said_by("x-step200k"), Said(200'000, 0, 0, "x"));
  EXPECT_EQ(said_by("x-step1.5M"), Said(1'500'000, 0, 0, "x"));
}

TEST(Revision, OtherNamesSayNothing) {
  for (const char* name : {"", "main", "SmolLM2-135M", "stepwise", "step", "step-", "step-x", "steps",
                           "step99999999999999999999", "1000", "Jupiter-7b", "step1e5", "step1_000", "step5x"})
    EXPECT_FALSE(parse_revision(name)) << name;
}

TEST(Revision, ASnapshotHasTheNameOfItsRef) {
  const test::TemporaryFolder folder;
  const auto cache = folder / "models--EleutherAI--pythia-70m";
  std::filesystem::create_directories(cache / "refs");
  write_file(cache / "refs/step512", "0123abc\n");
  write_file(cache / "refs/main", "4567def");
  for (const char* snapshot : {"0123abc", "4567def"})
    std::filesystem::create_directories(cache / "snapshots" / snapshot);
  EXPECT_EQ(revision_of(cache / "snapshots/0123abc")->step, 512);
  EXPECT_FALSE(revision_of(cache / "snapshots/4567def"));
  EXPECT_EQ(published_name(cache / "snapshots/0123abc"), "EleutherAI/pythia-70m, step 512");
  EXPECT_EQ(published_name(cache / "snapshots/4567def"), "EleutherAI/pythia-70m");
  EXPECT_EQ(published_model_name(cache / "snapshots/0123abc"), "EleutherAI/pythia-70m");
}

TEST(Revision, ModelsAreNamedWithAndWithoutIt) {
  EXPECT_EQ(published_name("/models/pythia-70m/step1000"), "pythia-70m/step1000");
  EXPECT_EQ(published_model_name("/models/pythia-70m/step1000"), "pythia-70m");
  EXPECT_EQ(published_name("/models/pythia-70m-step1000"), "pythia-70m-step1000");
  EXPECT_EQ(published_model_name("/models/pythia-70m-step1000"), "pythia-70m");
  EXPECT_EQ(published_name("/models/SmolLM2-135M"), "SmolLM2-135M");
  EXPECT_EQ(published_model_name("/models/SmolLM2-135M"), "SmolLM2-135M");
}

}  // namespace
}  // namespace headscope
