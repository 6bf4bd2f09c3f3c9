#include "heads/roles/definition.h"

#include "core/atomic_file.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using namespace test;
using ::testing::ElementsAre;

std::vector<std::string> role_names(const RoleDefinition& definition) {
  std::vector<std::string> names;
  for (const Role& role : definition.roles) names.push_back(role.name);
  return names;
}

TEST(RoleDefinition, BuiltInIsTheFileThatUsersCopy) {
  EXPECT_EQ(default_roles_text(), read_file("configs/roles/seeds.yaml"));
  const RoleDefinition& definition = default_role_definition();
  EXPECT_EQ(definition.id, "seeds-1");
  EXPECT_THAT(role_names(definition), ElementsAre("induction", "previous_token", "current_token", "static_sink",
                                                  "semantic_retrieval", "syntactic_gatherer"));
  EXPECT_EQ(read_role_definition("configs/roles/seeds.yaml").hash(), definition.hash());
}

TEST(RoleDefinition, KeepsTheOrderOfTheFile) {
  const auto definition = parse_role_definition(
      "id: mine-1\n"
      "roles:\n"
      "  zebra: {sink: 0.25, broad: 1}\n"
      "  apple: {self: 0}\n"
      "  mango:\n"
      "    high_norm: 0.6\n",
      "mine.yaml");
  EXPECT_EQ(definition.id, "mine-1");
  EXPECT_EQ(definition.origin, "mine.yaml");
  EXPECT_THAT(role_names(definition), ElementsAre("zebra", "apple", "mango"));
  ASSERT_EQ(definition.roles[0].minimums.size(), 2U);
  EXPECT_EQ(definition.roles[0].minimums[0].score, Score::sink);
  EXPECT_EQ(definition.roles[0].minimums[0].least, 0.25);
  EXPECT_EQ(definition.roles[0].minimums[1].score, Score::broad);
  EXPECT_EQ(definition.name_of(1), "apple");
  EXPECT_EQ(definition.name_of(3), "mixed");
}

TEST(RoleDefinition, IsReadFromAFile) {
  const TemporaryFolder folder;
  write_file(folder / "mine.yaml", "id: mine-1\nroles: {a: {sink: 0.5}}\n");
  EXPECT_EQ(read_role_definition(folder / "mine.yaml").roles.at(0).name, "a");
  write_file(folder / "bad.yaml", "id: mine-1\nroles: {a: {snk: 0.5}}\n");
  expect_error(Fault::input, "bad.yaml:2: 'roles.a.snk': there is no score 'snk'; did you mean 'sink'?",
               [&] { read_role_definition(folder / "bad.yaml"); });
}

TEST(RoleDefinition, HashIsOfWhatDecides) {
  const auto hash = [](const std::string& text) { return parse_role_definition(text, "mine.yaml").hash(); };
  const std::string base = hash("id: a\nroles: {x: {sink: 0.5, self: 0.1}, y: {broad: 0.5}}\n");
  EXPECT_EQ(hash("# why\nid: b\nroles:\n  x: {self: 0.10, sink: 0.5}\n  y: {broad: 5e-1}\n"), base);
  EXPECT_NE(hash("id: a\nroles: {x: {sink: 0.51, self: 0.1}, y: {broad: 0.5}}\n"), base);
  EXPECT_NE(hash("id: a\nroles: {y: {broad: 0.5}, x: {sink: 0.5, self: 0.1}}\n"), base);
  EXPECT_NE(hash("id: a\nroles: {z: {sink: 0.5, self: 0.1}, y: {broad: 0.5}}\n"), base);
  EXPECT_NE(hash("id: a\nroles: {x: {sink: 0.5, previous: 0.1}, y: {broad: 0.5}}\n"), base);
}

TEST(RoleDefinition, OfOtherThresholdsNeedsAnotherId) {
  std::string text(default_roles_text());
  text.replace(text.find("induction: 0.5"), 14, "induction: 0.4");
  expect_error(Fault::input, "mine.yaml: 'id' is 'seeds-1', the built-in definition",
               [&] { parse_role_definition(text, "mine.yaml"); });
  text.replace(text.find("id: seeds-1"), 11, "id: mine-1 ");
  EXPECT_NE(parse_role_definition(text, "mine.yaml").hash(), default_role_definition().hash());
}

struct Refused {
  std::string text, message;
};

TEST(RoleDefinition, IsRefusedWithPlaceAndKey) {
  const Refused cases[] = {
      {"roles: {a: {sink: 0.5}}", "f.yaml: 'id' is missing"},
      {"id: \nroles: {a: {sink: 0.5}}", "f.yaml: 'id' is missing"},
      {"id: a b\nroles: {a: {sink: 0.5}}", "f.yaml:1: 'id' is 'a b'; expected at most 100 letters"},
      {"id: ..\nroles: {a: {sink: 0.5}}", "f.yaml:1: 'id' is '..'; expected"},
      {"id: x", "f.yaml: 'roles' has no role with a minimum"},
      {"id: x\nroles: {}", "f.yaml: 'roles' has no role with a minimum"},
      {"id: x\nroles: 3", "f.yaml:2: 'roles' is '3'; expected scores and their minimums: {focused: 0.5}"},
      {"id: x\nroles:\n  a: 0.5", "f.yaml:3: 'roles.a' is '0.5'; expected scores"},
      {"id: x\nroles:\n  a: {fokused: 0.5}",
       "f.yaml:3: 'roles.a.fokused': there is no score 'fokused'; did you mean 'focused'?"},
      {"id: x\nroles:\n  a: {zzzzzzzz: 0.5}", "there is no score 'zzzzzzzz'; the scores are focused, broad,"},
      {"id: x\nroles:\n  a: {sink: 1.5}", "f.yaml:3: 'roles.a.sink' is '1.5'; expected a number from 0 to 1"},
      {"id: x\nroles:\n  a: {sink: -0.1}", "'roles.a.sink' is '-0.1'; expected a number from 0 to 1"},
      {"id: x\nroles:\n  a: {sink: nan}", "'roles.a.sink' is 'nan'; expected a number from 0 to 1"},
      {"id: x\nroles:\n  a: {sink: half}", "'roles.a.sink' is 'half'; expected a number from 0 to 1"},
      {"id: x\nroles:\n  a: {sink: [0.1, 0.2]}", "'roles.a.sink' is '0.1,0.2'; expected a number from 0 to 1"},
      {"id: x\nroles:\n  a: {sink: 0.5}\n  a: {self: 0.5}", "f.yaml:4: 'roles.a' is given twice"},
      {"id: x\nroles:\n  a: {sink: 0.5, sink: 0.6}", "f.yaml:3: 'roles.a.sink' is given twice"},
      {"id: x\nroles:\n  a: {sink: 0.5}\n  b: {self: 0.5}\nroles.a: {broad: 0.5}",
       "f.yaml:5: 'roles.a.broad': the role 'a' is given twice"},
      {"id: x\nroles:\n  a: {sink: 0.5}\nroles.a: {sink: 0.6}", "f.yaml:4: 'roles.a.sink' is given twice"},
      {"id: x\nroles:\n  mixed: {sink: 0.5}", "f.yaml:3: 'roles.mixed.sink': 'mixed' is a head without a role"},
      {"id: x\nroles:\n  \"a b\": {sink: 0.5}", "f.yaml:3: 'roles.a b.sink': a role's name is made of"},
      {"id: x\nroles:\n  \"\": {sink: 0.5}", "f.yaml:3: 'roles..sink': a role's name is made of"},
      {"id: x\nroles:\n  a: {sink: {least: 0.5}}", "f.yaml:3: 'roles.a.sink.least' is nested too deep"},
      {"id: x\nrolls:\n  a: {sink: 0.5}", "f.yaml:3: unknown key 'rolls'; did you mean 'roles'?"},
      {"id: x\nroles: [", "not valid YAML"},
  };
  for (const auto& [text, message] : cases) {
    SCOPED_TRACE(text);
    expect_error(Fault::input, message, [&, &given = text] { parse_role_definition(given, "f.yaml"); });
  }
}

}  // namespace
}  // namespace headscope
