// Roles found in models whose heads are known: by construction, or because they were never trained.
#include <gtest/gtest.h>

#include "heads/roles/roles.h"
#include "heads/run_tables.h"
#include "planted_model.h"
#include "settings/setup.h"
#include "support/temporary_folder.h"
#include "train/trainer.h"

namespace headscope {
namespace {

using test::planted_config;
using test::planted_model;
using test::TemporaryFolder;

// What `headscope roles` sees of a model: measurements, through the tables.
RolesResult roles_in(const Decoder& model, const Batch& batch) {
  const TemporaryFolder folder;
  const ProbeResult probe = probe_model(model, {batch}, at::kFloat, MetricSelection("all", "test"), false);
  RunTables tables(folder.path());
  tables.add_heads({{0, 0}, "probe"}, probe.layers);
  tables.flush();
  return roles_of(read_tracks(folder.path()).probe, default_role_definition(), model.config.d_k);
}

// Random tokens behind the start token, the same in no two sequences.
Batch random_batch(const DecoderConfig& config) {
  at::Generator generator = at::detail::createCPUGenerator(2);
  const at::Tensor tokens = at::randint(1, config.vocabulary, {4, 128}, generator, at::kLong);
  tokens.select(1, 0).fill_(test::start_token);
  return {tokens, tokens};
}

class Planted : public ::testing::Test {
 protected:
  RolesResult result = roles_in(planted_model(), random_batch(planted_config()));

  [[nodiscard]] const HeadRole& head(std::int64_t layer, std::int64_t index) const {
    return result.heads[static_cast<std::size_t>(layer * 4 + index)];
  }
  [[nodiscard]] std::string_view role(std::int64_t layer, std::int64_t index) const {
    return result.definition.name_of(head(layer, index).label);
  }
  [[nodiscard]] double score(std::int64_t layer, std::int64_t index, Score which) const {
    return head(layer, index).scores[which];
  }
};

TEST_F(Planted, TheSinkIsFound) {
  EXPECT_EQ(role(0, 0), "static_sink");
  EXPECT_GT(score(0, 0, Score::sink), 0.95);
  EXPECT_GT(score(0, 0, Score::constant), 0.95);
}

TEST_F(Planted, ThePreviousTokenHeadIsFound) {
  EXPECT_EQ(role(0, 1), "previous_token");
  EXPECT_GT(score(0, 1, Score::previous), 0.95);
  EXPECT_GT(score(0, 1, Score::query_dependent), 0.95);
  EXPECT_GT(score(0, 1, Score::consistent), 0.95);
}

TEST_F(Planted, TheInductionHeadIsFound) {
  EXPECT_EQ(role(1, 0), "induction");
  EXPECT_GT(score(1, 0, Score::induction), 0.8);  // some random tokens come twice
}

TEST_F(Planted, TheUniformHeadWithShortKeysIsAGatherer) {
  EXPECT_EQ(role(0, 2), "syntactic_gatherer");
  EXPECT_GT(score(0, 2, Score::broad), 0.999);
}

TEST_F(Planted, UniformHeadsWithOrdinaryKeysHaveNoRole) {
  EXPECT_EQ(role(0, 3), "mixed");
  for (std::int64_t index = 1; index < 4; ++index) EXPECT_EQ(role(1, index), "mixed");
}

// Only the head that was planted scores.
TEST_F(Planted, ScoresTellTheHeadsApart) {
  for (std::int64_t layer = 0; layer < 2; ++layer)
    for (std::int64_t index = 0; index < 4; ++index) {
      const auto expect_low_unless = [&](bool planted, Score which) {
        EXPECT_TRUE(planted || score(layer, index, which) < 0.2) << layer << " " << index << " " << score_name(which);
      };
      expect_low_unless(layer == 0 && index == 0, Score::sink);
      expect_low_unless(layer == 0 && index == 1, Score::previous);
      expect_low_unless(layer == 1 && index == 0, Score::induction);
    }
}

// Heads of untrained models with a role, of all heads: docs/roles.md has the rate of more seeds.
TEST(Initial, ModelsHaveNoRoles) {
  Console quiet({.quiet = true});
  headscope::Setup setup = preset_setup("tiny");
  setup.train.batch = 4;
  const Corpus corpus = load_held_out(setup, quiet);
  const ComputeDevice device = choose_device("cpu");
  const Batch batch = validation_batches(setup.train, corpus, device).front();
  const char* text = std::getenv("HEADSCOPE_INITIAL_SEEDS");
  const std::uint64_t seeds = text == nullptr ? 2 : std::stoull(text);
  for (const bool qk_norm : {true, false}) {
    setup.model.qk_norm = qk_norm;
    std::int64_t labelled = 0, heads = 0;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const RolesResult result = roles_in(make_decoder(setup.model, seed), batch);
      heads += static_cast<std::int64_t>(result.heads.size());
      labelled += static_cast<std::int64_t>(result.heads.size()) - result.role_counts().back();
    }
    fmt::print("qk_norm {}: {} of {} untrained heads have a role\n", qk_norm, labelled, heads);
    EXPECT_LE(static_cast<double>(labelled), 0.01 * static_cast<double>(heads));
  }
}

}  // namespace
}  // namespace headscope
