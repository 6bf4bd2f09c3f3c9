#include <limits>

#include "heads/roles/roles.h"
#include "heads/roles/synthetic.h"

namespace headscope {
namespace {

using namespace made_heads;
using ::testing::Each;
using ::testing::ElementsAre;

// The heads of one layer, each with a key head of its own, beside as many untrained ones and one more: these set the
// median of the norms.
std::vector<std::string> names_of(const std::vector<MetricValues>& heads) {
  const auto n = static_cast<std::int64_t>(heads.size());
  Tracks tracks = made_tracks({1, 2 * n + 1, 2 * n + 1});
  for (std::int64_t head = 0; head < 2 * n + 1; ++head)
    set_head(tracks, 0, 0, head, head < n ? heads[static_cast<std::size_t>(head)] : untrained());
  const RoleDefinition& definition = default_role_definition();
  std::vector<std::string> names;
  for (const HeadRole& role : roles_at(tracks, 0, definition, d_k)) names.emplace_back(definition.name_of(role.label));
  names.resize(heads.size());
  return names;
}

TEST(Labels, KnowATypicalHeadOfEveryRole) {
  EXPECT_THAT(
      names_of({static_sink(), retrieval(), gatherer(), previous_token(), current_token(), induction(), untrained()}),
      ElementsAre("static_sink", "semantic_retrieval", "syntactic_gatherer", "previous_token", "current_token",
                  "induction", "mixed"));
}

TEST(Labels, OfAnUntrainedModelAreMixed) {
  Tracks tracks = made_tracks({12, 4, 8});
  std::int64_t place = 0;
  for (std::int64_t layer = 0; layer < 12; ++layer)
    for (std::int64_t head = 0; head < 8; ++head, ++place)
      set_head(tracks, 0, layer, head, untrained(static_cast<double>(place % 21) / 10 - 1));
  std::vector<std::size_t> labels;
  for (const HeadRole& role : roles_at(tracks, 0, default_role_definition(), d_k)) labels.push_back(role.label);
  EXPECT_EQ(labels.size(), 96U);
  EXPECT_THAT(labels, Each(default_role_definition().roles.size()));
}

// Every condition of the built-in roles, taken away from a head that has it.
TEST(Labels, NeedEveryConditionOfTheirRole) {
  EXPECT_THAT(names_of({but(static_sink(), {{"entropy_norm", 0.6}}), but(static_sink(), {{"constancy", 0.45}}),
                        but(static_sink(), {{"sink", 0.2}}), but(static_sink(), {{"k_axis", 0.3}}),
                        but(static_sink(), {{"k_norm", 7}})}),
              ElementsAre("mixed", "semantic_retrieval", "mixed", "mixed", "mixed"));
  EXPECT_THAT(names_of({but(retrieval(), {{"entropy_norm", 0.6}}), but(retrieval(), {{"constancy", 0.6}}),
                        but(retrieval(), {{"k_norm", 8.5}})}),
              Each("mixed"));
  EXPECT_THAT(names_of({but(gatherer(), {{"entropy_norm", 0.6}}), but(gatherer(), {{"k_norm", 7.5}}),
                        but(gatherer(), {{"consistency", 0.6}})}),
              Each("mixed"));
  EXPECT_THAT(names_of({but(previous_token(), {{"previous", 0.4}}), but(current_token(), {{"self", 0.4}}),
                        but(induction(), {{"induction", 0.4}})}),
              ElementsAre("semantic_retrieval", "semantic_retrieval", "static_sink"));
}

HeadScores scores_with(std::vector<std::pair<Score, double>> given) {
  HeadScores scores;
  scores.values.fill(std::numeric_limits<double>::quiet_NaN());
  for (const auto& [score, value] : given) scores[score] = value;
  return scores;
}

const RoleDefinition& two_roles() {
  static const RoleDefinition definition =
      parse_role_definition("id: t\nroles: {first: {sink: 0.5, self: 0.25}, second: {sink: 0.25}}", "t.yaml");
  return definition;
}

TEST(Labels, AreTheFirstRoleThatHolds) {
  EXPECT_EQ(role_of(scores_with({{Score::sink, 0.9}, {Score::self, 0.9}}), two_roles()).label, 0U);
  EXPECT_EQ(role_of(scores_with({{Score::sink, 0.9}, {Score::self, 0.1}}), two_roles()).label, 1U);
  EXPECT_EQ(role_of(scores_with({{Score::sink, 0.1}, {Score::self, 0.9}}), two_roles()).label, 2U);
}

TEST(Labels, HoldAtTheMinimumAndNotBelow) {
  const double below = std::nextafter(0.25, 0);
  EXPECT_EQ(role_of(scores_with({{Score::sink, 0.5}, {Score::self, 0.25}}), two_roles()).label, 0U);
  EXPECT_EQ(role_of(scores_with({{Score::sink, 0.5}, {Score::self, below}}), two_roles()).label, 1U);
  EXPECT_EQ(role_of(scores_with({{Score::sink, below}}), two_roles()).label, 2U);
}

TEST(Labels, DoNotHoldWhereAScoreIsMissing) {
  EXPECT_EQ(role_of(scores_with({{Score::sink, 1}}), two_roles()).label, 1U);
  EXPECT_EQ(role_of(scores_with({{Score::self, 1}}), two_roles()).label, 2U);
  const auto anything = parse_role_definition("id: t\nroles: {any: {sink: 0}}", "t.yaml");
  EXPECT_EQ(role_of(scores_with({}), anything).label, 1U);
}

TEST(Labels, ClarityIsTheGeometricMeanOfTheScoresAskedFor) {
  // sqrt(0.64 * 0.25) = 0.4; other scores do not count
  const auto first = role_of(scores_with({{Score::sink, 0.64}, {Score::self, 0.25}, {Score::broad, 0.1}}), two_roles());
  EXPECT_NEAR(first.clarity, 0.4, 1e-15);
  EXPECT_EQ(role_of(scores_with({{Score::sink, 0.3}}), two_roles()).clarity, 0.3);
  EXPECT_TRUE(std::isnan(role_of(scores_with({}), two_roles()).clarity));
}

TEST(Labels, AreCountedWithMixedLast) {
  EXPECT_THAT(count_labels(std::vector<std::size_t>{2, 0, 2, 2}, two_roles()), ElementsAre(1, 0, 3));
}

}  // namespace
}  // namespace headscope
