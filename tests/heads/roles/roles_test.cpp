#include "heads/roles/roles.h"

#include "heads/roles/synthetic.h"
#include "support/expect_error.h"

namespace headscope {
namespace {

using namespace made_heads;
using test::expect_error;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Three layers of four heads with two key heads: at first all untrained, then one head of every role appears; head 1 of
// layer 0 is a retrieval head only in between.
Tracks training() {
  Tracks tracks = made_tracks({3, 2, 4}, 5);
  for (std::size_t moment = 0; moment < 5; ++moment)
    for (std::int64_t layer = 0; layer < 3; ++layer)
      for (std::int64_t head = 0; head < 4; ++head) set_head(tracks, moment, layer, head, untrained());
  for (std::size_t moment = 1; moment < 5; ++moment) {
    set_head(tracks, moment, 0, 0, static_sink());
    if (moment == 2) set_head(tracks, moment, 0, 1, but(retrieval(), {{"k_axis", 0.6}}));  // the sink's keys
    set_head(tracks, moment, 2, 1, gatherer());  // and head 0, which reads the same keys
  }
  set_head(tracks, 4, 1, 3, but(previous_token(), {{"k_norm", 8}}));
  return tracks;
}

TEST(Roles, AreLabelsTimelineAndTransitions) {
  const RolesResult result = roles_of(training(), default_role_definition(), d_k);
  EXPECT_EQ(result.moment, (Moment{40, 4000}));
  EXPECT_EQ(result.source, "probe");
  EXPECT_THAT(result.role_counts(), ElementsAre(0, 1, 0, 1, 0, 2, 8));
  EXPECT_THAT(result.timeline.shares.front(), ElementsAre(0, 0, 0, 0, 0, 0, 1));
  EXPECT_THAT(result.unmeasured, IsEmpty());
  EXPECT_EQ(to_csv(role_transitions_table(result)).substr(0, 47), "layer,head,step,tokens,from,to,definition,defin");
  const Table table = role_transitions_table(result);
  EXPECT_THAT(table.integers("layer"), ElementsAre(0, 2, 2, 0, 0, 1));
  EXPECT_THAT(table.integers("head"), ElementsAre(0, 0, 1, 1, 1, 3));
  EXPECT_THAT(table.integers("step"), ElementsAre(10, 10, 10, 20, 30, 40));
  EXPECT_THAT(table.integers("tokens"), ElementsAre(1000, 1000, 1000, 2000, 3000, 4000));
  EXPECT_THAT(table.texts("from"), ElementsAre("mixed", "mixed", "mixed", "mixed", "semantic_retrieval", "mixed"));
  EXPECT_THAT(table.texts("to"), ElementsAre("static_sink", "syntactic_gatherer", "syntactic_gatherer",
                                             "semantic_retrieval", "mixed", "previous_token"));
}

TEST(Roles, TableHasARowForEveryHead) {
  const RolesResult result = roles_of(training(), default_role_definition(), d_k);
  const Table table = roles_table(result);
  ASSERT_EQ(table.rows(), 12U);
  std::vector<std::string> names;
  for (const Column& column : table.columns()) names.push_back(column.name);
  EXPECT_THAT(names, ElementsAre("layer", "head", "key_head", "role", "clarity", "focused", "broad", "constant",
                                 "query_dependent", "axis_aligned", "high_norm", "low_norm", "consistent", "sink",
                                 "previous", "self", "induction", "definition", "definition_hash"));
  EXPECT_EQ(table.integers("layer")[7], 1);
  EXPECT_EQ(table.integers("head")[7], 3);
  EXPECT_EQ(table.integers("key_head")[7], 1);
  EXPECT_EQ(table.texts("role")[7], "previous_token");
  EXPECT_EQ(table.numbers("clarity")[7], 0.8);
  EXPECT_EQ(table.numbers("previous")[7], 0.8);
  EXPECT_EQ(table.texts("role")[6], "mixed");
  EXPECT_TRUE(std::isnan(table.numbers("clarity")[6]));
  EXPECT_EQ(table.texts("definition")[11], "seeds-1");
  EXPECT_EQ(table.texts("definition_hash")[11], default_role_definition().hash());
}

TEST(Roles, TimelineTableHasEveryRoleAtEveryMoment) {
  const Table table = role_timeline_table(roles_of(training(), default_role_definition(), d_k));
  ASSERT_EQ(table.rows(), 5U * 7U);
  const std::size_t row = 4 * 7 + 5;
  EXPECT_EQ(table.integers("step")[row], 40);
  EXPECT_EQ(table.integers("tokens")[row], 4000);
  EXPECT_EQ(table.texts("role")[row], "syntactic_gatherer");
  EXPECT_EQ(table.numbers("share")[row], 2.0 / 12);
  EXPECT_EQ(table.texts("definition")[row], "seeds-1");
}

TEST(Roles, JsonSaysWhatWasFoundAndByWhichDefinition) {
  const auto json = to_json(roles_of(training(), default_role_definition(), d_k));
  EXPECT_EQ(json["definition"]["id"], "seeds-1");
  EXPECT_EQ(json["definition"]["hash"], default_role_definition().hash());
  EXPECT_EQ(json["definition"]["scores"], "scores-1");
  EXPECT_EQ(json["definition"]["roles"]["semantic_retrieval"]["high_norm"], 0.526);
  EXPECT_EQ(json["counts"]["static_sink"], 1);
  EXPECT_EQ(json["counts"]["mixed"], 8);
  EXPECT_EQ(json["shares"]["syntactic_gatherer"], 2.0 / 12);
  EXPECT_EQ(json["moments"], 5);
  EXPECT_EQ(json["transitions"], 6);
  EXPECT_EQ(json["transitions_last_quarter"], 1);
  EXPECT_EQ(json["heads"]["syntactic_gatherer"].dump(), "[[2,0],[2,1]]");
  EXPECT_EQ(json["heads"]["induction"].dump(), "[]");
  EXPECT_EQ(json["not_measured"].dump(), "[]");
}

TEST(Roles, TerminalShowsAMapWithLegendAndStability) {
  EXPECT_EQ(to_terminal(roles_of(training(), default_role_definition(), d_k)),
            "roles at step 40 (4,000 tokens), on the fixed held-out batch (probe), definition seeds-1\n"
            "layer  query heads 0 to 3\n"
            "    0  S...\n"
            "    1  ...P\n"
            "    2  GG..\n"
            "I induction 0, P previous_token 1, C current_token 0, S static_sink 1, R semantic_retrieval 0,\n"
            "G syntactic_gatherer 2, . mixed 8\n"
            "6 changes of role over 5 moments, 1 in the last quarter of the tokens\n");
}

TEST(Roles, TerminalSaysWhatWasNotMeasured) {
  Tracks tracks = made_tracks({1, 1, 2});
  for (const int head : {0, 1}) tracks.set("previous", 0, 0, head, 0.9);
  const auto definition =
      parse_role_definition("id: t\nroles: {back: {previous: 0.5}, drain: {sink: 0.5}, far: {broad: 0.5}}", "t.yaml");
  const RolesResult result = roles_of(tracks, definition, d_k);
  EXPECT_EQ(to_terminal(result),
            "roles, on the fixed held-out batch (probe), definition t\n"
            "layer  query heads 0 to 1\n"
            "    0  BB\n"
            "B back 2, D drain 0, F far 0, . mixed 0\n"
            "not measured: broad, sink; so no head can be drain, far\n"
            "measured at one moment: changes of role are not known\n");
  EXPECT_EQ(to_json(result)["not_measured"].dump(), R"(["broad","sink"])");
}

TEST(Roles, LettersAreDistinct) {
  const auto letters = [](const std::string& roles) {
    return role_letters(parse_role_definition("id: t\nroles: {" + roles + "}", "t.yaml"));
  };
  EXPECT_EQ(role_letters(default_role_definition()), "IPCSRG.");
  EXPECT_EQ(letters("sink: {sink: 0}, sink-two: {sink: 0}, sinking: {sink: 0}, s: {sink: 0}, T: {sink: 0}"), "STIAB.");
  std::string many;
  for (int i = 0; i < 63; ++i) many += fmt::format("{}x{}: {{sink: 0}}", i == 0 ? "" : ", ", i);
  EXPECT_EQ(letters(many).back(), '.');
  EXPECT_EQ(letters(many)[62], '?');
}

TEST(Roles, UserDefinitionReplacesTheBuiltIn) {
  const auto definition = parse_role_definition("id: mine-1\nroles: {wide: {broad: 0.9}}", "mine.yaml");
  const RolesResult result = roles_of(training(), definition, d_k);
  EXPECT_THAT(result.role_counts(), ElementsAre(10, 2));
  EXPECT_EQ(roles_table(result).texts("definition")[0], "mine-1");
  EXPECT_EQ(roles_table(result).texts("role")[2], "wide");
}

TEST(Roles, UseTheHeadDimension) {
  Tracks tracks = made_tracks({1, 1, 1});
  tracks.set("k_axis", 0, 0, 0, 0.55);
  const auto definition = parse_role_definition("id: t\nroles: {axis: {axis_aligned: 0.5}}", "t.yaml");
  EXPECT_THAT(roles_of(tracks, definition, 0).role_counts(), ElementsAre(1, 0));
  EXPECT_THAT(roles_of(tracks, definition, 16).role_counts(), ElementsAre(0, 1));  // (0.55 - 0.25) / 0.75 = 0.4
}

TEST(Roles, EndAtTheLastMomentThatCanBeCompared) {
  Tracks tracks = made_tracks({1, 2, 2}, 3);
  for (const std::size_t moment : {0, 1})
    for (const int head : {0, 1}) set_head(tracks, moment, 0, head, untrained());
  for (const int head : {0, 1}) tracks.set("k_norm", 2, 0, head, head == 0 ? 4 : 16);  // and nothing else
  const RolesResult result = roles_of(tracks, default_role_definition(), d_k);
  EXPECT_EQ(result.moment, (Moment{10, 1000}));
  EXPECT_EQ(result.timeline.moments.size(), 2U);
  EXPECT_EQ(result.heads[0].scores[Score::low_norm], 0.5);
}

TEST(Roles, ComeFromTheProbesUnlessThereAreNoneOrTrainingIsAskedFor) {
  RunTracks run;
  run.train.moments = {{1, 10}, {2, 20}};
  EXPECT_EQ(roles_source(run).source, "train");
  run.probe.moments = {{0, 0}};
  EXPECT_EQ(roles_source(run).source, "probe");
  EXPECT_EQ(roles_source(run, /*from_training=*/true).source, "train");
}

TEST(Roles, AreRefusedWithoutMeasurements) {
  expect_error(Fault::input, "no query head was measured in 'probe' rows", [] {
    roles_of(made_tracks({2, 2, 4}, 0), default_role_definition(), d_k);
  });
  expect_error(Fault::input, "no query head was measured in 'probe' rows", [] {
    roles_of(made_tracks({2, 2, 0}), default_role_definition(), d_k);
  });
  Tracks apart = made_tracks({1, 1, 1}, 2);
  apart.set("sink", 0, 0, 0, 0.5);
  apart.set("entropy_norm", 1, 0, 0, 0.5);
  expect_error(Fault::input, "no moment of 'probe' rows has every metric that 'seeds-1' asks for",
               [&] { roles_of(apart, default_role_definition(), d_k); });
}

}  // namespace
}  // namespace headscope
